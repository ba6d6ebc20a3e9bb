"""A coverage-guided fuzzer of everything that reads a peer's bytes; `tests/wire/corpus` is what it has found worth keeping.

The suite replays the corpus (test_corpus.py). To go on from there, with atheris in an environment of its own (it has no place
among this project's libraries), from the root of the checkout:

    python -m tests.wire.fuzz_frames tests/wire/corpus -max_len=512 -max_total_time=300

and afterwards keep only what reaches something new: `python -m tests.wire.fuzz_frames -merge=1 NEW_DIR tests/wire/corpus`.
"""

import importlib
import sys
from array import array
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

from tests.wire.both_kernels import plain
from tests.wire.kernel_checks import check_acks, check_sends
from wire import frames, payloads
from wire.errors import RemoteError
from wire.frames import Frame, encode
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.run import FLAG_UNPARSEABLE, EntryRun

FRAME_BYTES_MAX = 512


def examine(data: bytes, sends: ModuleType, acks: ModuleType, metadata: ModuleType) -> int:
    """Read a peer's bytes in every way there is; the number of whole frames. Anything but a RemoteError is a bug."""
    at = count = 0
    while (frame := whole_frame(data, at)) is not None:
        examine_frame(data[at : frame.end], frame, sends, acks, metadata)
        at = frame.end
        count += 1
    assert sends.take_sends(data, at, len(data), 36, 9, FRAME_BYTES_MAX) is None
    assert acks.take_acks(data, at, len(data)) is None
    return count


def whole_frame(data: bytes, at: int) -> Frame | None:
    """None also for a frame that is refused: then no kernel may take it either."""
    try:
        return frames.next_frame(data, at, len(data), FRAME_BYTES_MAX)
    except RemoteError:
        return None


def examine_frame(data: bytes, frame: Frame, sends: ModuleType, acks: ModuleType, metadata: ModuleType) -> None:
    run = sends.take_sends(data, 0, len(data), 36, 9, FRAME_BYTES_MAX)
    if run is not None:
        check_sends(data, run)
        sends.send_receipts(run, 1, 2)
    ids = acks.take_acks(data, 0, len(data))
    if ids is not None:
        check_acks(data, ids)
    assert BaseCommand.FromString(encode(frame.command)[8:]) == frame.command
    examine_payload(bytes(frame.payload), metadata)


def examine_payload(section: bytes, metadata: ModuleType) -> None:
    entry = EntryRun(1, 2, section, array("I", [0, len(section)]), 0)
    found = metadata.scan(entry)
    metadata.key_hashes(entry)
    metadata.publish_times(entry)
    try:
        parts = payloads.split_section(section)
        message = payloads.message_metadata(parts)
    except RemoteError:
        assert found.any_flags == FLAG_UNPARSEABLE
        return
    if found.any_flags != FLAG_UNPARSEABLE:
        assert found.message_count == message.num_messages_in_batch
    with suppress(RemoteError):
        payloads.verify(parts)
        payloads.broker_entry_metadata(parts)
        list(payloads.batch_messages(parts.payload, message.num_messages_in_batch))


def instrument(atheris: Any, module: ModuleType) -> None:
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            atheris.instrument_func(value)


def main() -> None:
    atheris: Any = importlib.import_module("atheris")
    kernels = [plain(name) for name in ("sends", "acks", "metadata")]
    for module in (*kernels, frames, payloads):
        instrument(atheris, module)

    def once(data: bytes) -> None:
        examine(data, *kernels)

    again = f"{sys.executable} -m tests.wire.fuzz_frames"  # -merge starts it anew, through a shell
    atheris.Setup([again, *sys.argv[1:]], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
