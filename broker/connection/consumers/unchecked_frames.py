"""MESSAGE frames for old clients, which do not know that a payload section may begin with a checksum.

Apache takes it off for peers below version 11: 6 brought it, 11 mended it in the C++ client (PulsarCommandSenderImpl).
Pure. One frame at a time: such a client is years old, and the cost of this path does not matter.
"""

from collections.abc import Mapping, Sequence

from wire.kernels.messages import message_frames
from wire.payloads import MAGIC_CHECKSUM
from wire.run import EntryRun

_CHECKSUM_BYTES = len(MAGIC_CHECKSUM) + 4


def unchecked_message_frames(
    run: EntryRun,
    indexes: range | Sequence[int],
    consumer_id: int,
    partition: int,
    redelivery_counts: Sequence[int] | None,
    ack_sets: Mapping[int, Sequence[int]] | None,
    consumer_epoch: int | None,
) -> bytes:
    """Returns frames like `wire.kernels.messages.message_frames`, without checksums."""
    return without_checksums(message_frames(run, indexes, consumer_id, partition, redelivery_counts, ack_sets, consumer_epoch))


def without_checksums(frames: bytes) -> bytes:
    """The same frames; those without a checksum are left as they are."""
    rest, pieces = memoryview(frames), list[bytes | memoryview]()
    while rest:
        end = 4 + int.from_bytes(rest[:4])
        section = 8 + int.from_bytes(rest[4:8])
        if rest[section : section + 2] == MAGIC_CHECKSUM:
            pieces += [(end - 4 - _CHECKSUM_BYTES).to_bytes(4), rest[4:section], rest[section + _CHECKSUM_BYTES : end]]
        else:
            pieces.append(rest[:end])
        rest = rest[end:]
    return b"".join(pieces)
