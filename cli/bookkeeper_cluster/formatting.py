"""Texts of ledgers, entries and sizes, as Apache's shell and HTTP show them. Pure."""

import base64
from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState
from wire.bookie.digests import DigestType

HEX_LINE_BYTES = 16
OMITTED = "OMITTED"
_DIGESTS = {DigestType.HMAC: "MAC"}
_UNITS = ("KB", "MB", "GB", "TB")


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def digest_name(digest: DigestType) -> str:
    """Name of a digest in BookKeeper's API; the metadata has another name for one."""
    return _DIGESTS.get(digest, digest.name)


def metadata_text(metadata: LedgerMetadata) -> str:
    """LedgerMetadataImpl.toString."""
    parts = [
        f"formatVersion={metadata.format_version}",
        f"ensembleSize={metadata.ensemble_size}",
        f"writeQuorumSize={metadata.write_quorum}",
        f"ackQuorumSize={metadata.ack_quorum}",
        f"state={metadata.state.name}",
    ]
    if metadata.state == LedgerState.CLOSED:
        parts += [f"length={metadata.length_bytes}", f"lastEntryId={metadata.last_entry_id}"]
    if metadata.format_version > 1:  # version 1 has neither
        parts += [f"digestType={digest_name(metadata.digest_type)}", f"password=base64:{base64_of(metadata.password)}"]
    ensembles = ", ".join(f"{segment.first_entry_id}=[{', '.join(segment.bookies)}]" for segment in metadata.segments)
    custom = ", ".join(f"{key}=base64:{base64_of(value)}" for key, value in metadata.custom_metadata.items())
    parts += [f"ensembles={{{ensembles}}}", f"customMetadata={{{custom}}}"]
    return f"LedgerMetadata{{{', '.join(parts)}}}"


def metadata_json(ledger_id: int, metadata: LedgerMetadata) -> Mapping[str, object]:
    """A LedgerMetadata as Apache's HTTP shows it, but without the ledger's password, which there everybody may read."""
    return {
        "ledgerId": ledger_id,
        "metadataFormatVersion": metadata.format_version,
        "ensembleSize": metadata.ensemble_size,
        "writeQuorumSize": metadata.write_quorum,
        "ackQuorumSize": metadata.ack_quorum,
        "state": metadata.state.name,
        "closed": metadata.state == LedgerState.CLOSED,
        "length": metadata.length_bytes,
        "lastEntryId": metadata.last_entry_id,
        "ctime": -1 if metadata.created_ms is None else metadata.created_ms,
        "digestType": digest_name(metadata.digest_type),
        "password": OMITTED,
        "allEnsembles": {
            str(segment.first_entry_id): [{"id": bookie_id} for bookie_id in segment.bookies] for segment in metadata.segments
        },
        "customMetadata": {key: base64_of(value) for key, value in metadata.custom_metadata.items()},
    }


def readable(size_bytes: int) -> str:
    """`(12.345GB)`, in thousands and cut after three digits; empty below a thousand (InfoCommand.getReadable)."""
    value, unit = Decimal(size_bytes), ""
    for each in _UNITS:
        if value < 1000:
            break
        value, unit = value / 1000, each
    if not unit:
        return ""
    cut = value.quantize(Decimal("0.001"), ROUND_DOWN)
    return f"({cut.normalize():f}{unit})"


def entry_text(payload: bytes, form: str) -> str:
    """With form `string` as ASCII, unknown bytes replaced; with `hex` as a dump."""
    if form == "string":
        return payload.decode("ascii", errors="replace")
    return hex_dump(payload)


def hex_dump(data: bytes) -> str:
    """Offset, bytes and what of them is printable, a line for each sixteen."""
    lines = []
    for offset in range(0, len(data), HEX_LINE_BYTES):
        piece = data[offset : offset + HEX_LINE_BYTES]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{offset:08x}  {piece.hex(' '):<{HEX_LINE_BYTES * 3 - 1}}  {shown}")
    return "\n".join(lines)
