"""wire.kernels.delivery_times: when entries may be delivered. As it is installed: compiled where there is a compiler."""

from array import array

import pytest

from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.kernels.delivery_times import deliver_times, longest_delay
from wire.run import EntryRun

from ..frame_samples import metadata, section, stored

PUBLISHED_MS = 1_700_000_000_123


def to_deliver(at_ms: int | None) -> bytes:
    message = metadata("p", 7, PUBLISHED_MS)
    if at_ms is not None:
        message.deliver_at_time = at_ms
    return section(message.SerializeToString(), b"hello")


def test_entries_without_a_time_and_with_a_negative_one_are_delivered_at_once() -> None:
    unparseable = section(MessageMetadata(deliver_at_time=9).SerializePartialToString())
    times = [PUBLISHED_MS + 500, None, -1, (1 << 63) - 1, -(1 << 63), 0]
    run = stored([*map(to_deliver, times), unparseable])
    assert list(deliver_times(run)) == [PUBLISHED_MS + 500, -1, -1, (1 << 63) - 1, -1, 0, -1]


def test_the_longest_delay_is_from_the_publish_time() -> None:
    run = stored([to_deliver(None), to_deliver(PUBLISHED_MS + 500), to_deliver(PUBLISHED_MS + 7), to_deliver(5)])
    assert longest_delay(run) == 500
    assert longest_delay(stored([to_deliver(None), to_deliver(-1)])) == -1


def test_offsets_beyond_the_buffer_are_refused() -> None:
    for function in (deliver_times, longest_delay):
        with pytest.raises(ValueError, match="fit"):
            function(EntryRun(1, 0, bytes(100), array("I", [0, 101])))
