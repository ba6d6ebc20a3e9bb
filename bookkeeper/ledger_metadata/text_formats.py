"""Ledger metadata in BookKeeper's older versions 1 and 2, which a cluster that was upgraded still has. Pure.

Version 2 is the message of version 3 as text. Version 1 is lines: write quorum, ensemble size, length, a line per segment
(first entry, bookies, tabs between), and once the ledger is not open the last entry and `CLOSED`; a last entry of -102 says
that it is in recovery. Version 1 knows neither ack quorum nor digest nor password (LedgerMetadataSerDe).
"""

from google.protobuf import text_format

from wire.generated.ledger_metadata_pb2 import LedgerMetadataFormat

IN_RECOVERY = -102
_CLOSED = "CLOSED"


class MalformedText(Exception):
    """The text is not metadata of its version."""


def encode_version_2(message: LedgerMetadataFormat) -> bytes:
    """Without the creation token, which came with version 3."""
    copy = LedgerMetadataFormat()
    copy.CopyFrom(message)
    copy.ClearField("cToken")
    return text_format.MessageToString(copy).encode()


def decode_version_2(data: bytes) -> LedgerMetadataFormat:
    try:
        return text_format.Parse(data.decode(), LedgerMetadataFormat(), allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise MalformedText(f"version 2: {error}") from error


def encode_version_1(message: LedgerMetadataFormat) -> bytes:
    lines = [str(message.quorumSize), str(message.ensembleSize), str(message.length)]
    lines += ["\t".join((str(segment.firstEntryId), *segment.ensembleMember)) for segment in message.segment]
    if message.state != LedgerMetadataFormat.OPEN:
        last = IN_RECOVERY if message.state == LedgerMetadataFormat.IN_RECOVERY else message.lastEntryId
        lines.append(f"{last}\t{_CLOSED}")
    return "\n".join(lines).encode()


def decode_version_1(data: bytes) -> LedgerMetadataFormat:
    try:
        quorum, ensemble, length, *rest = data.decode().splitlines()
        message = LedgerMetadataFormat(
            quorumSize=int(quorum), ensembleSize=int(ensemble), length=int(length), state=LedgerMetadataFormat.OPEN
        )
        for each in rest:
            first, *bookies = each.split("\t")
            if bookies == [_CLOSED]:
                _close(message, int(first))
                break
            message.segment.add(firstEntryId=int(first), ensembleMember=bookies)
    except (ValueError, UnicodeDecodeError) as error:
        raise MalformedText(f"version 1: {error}") from error
    return message


def _close(message: LedgerMetadataFormat, last_entry_id: int) -> None:
    if last_entry_id == IN_RECOVERY:
        message.state = LedgerMetadataFormat.IN_RECOVERY
    else:
        message.state = LedgerMetadataFormat.CLOSED
        message.lastEntryId = last_entry_id
