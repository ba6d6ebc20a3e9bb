#!/usr/bin/env python3
"""Nanoseconds per message of each kernel, compiled and as plain Python: `.venv/bin/python benchmarks/kernels.py`.

A run of many small or 1 KB messages, and a run of one, which shows what a call costs. The best of many repeats, ten seconds in
all; nothing here touches a socket or a disk.
"""

import importlib.util
import pathlib
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from wire.frames import encode  # noqa: E402
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandSend, MessageMetadata  # noqa: E402
from wire.payloads import payload_section  # noqa: E402
from wire.run import EntryRun, SendRun  # noqa: E402

NAMES = ("sends", "entries", "messages", "metadata", "acks")
SECONDS = 0.15
"""Time for which each kernel is tried with each input."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes that a connection has read, and the run that they become."""

    title: str
    count: int
    sends: bytes
    acks: bytes
    run: SendRun
    stored: EntryRun


def load(name: str, *, plain: bool) -> ModuleType:
    if not plain:
        return importlib.import_module(f"wire.kernels.{name}")
    spec = importlib.util.spec_from_file_location(f"plain_{name}", ROOT / "wire" / "kernels" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample(title: str, count: int, body_bytes: int) -> Sample:
    metadata = MessageMetadata(producer_name="standalone-0-1", publish_time=1700000000000, partition_key="key-7")
    sends = acks = b""
    for index in range(count):
        metadata.sequence_id = index
        section = payload_section(metadata, bytes(body_bytes))
        send = CommandSend(producer_id=1, sequence_id=index, num_messages=1)
        sends += encode(BaseCommand(type=BaseCommand.SEND, send=send), section)
        ack = CommandAck(consumer_id=1, ack_type=CommandAck.Individual)
        ack.message_id.add(ledger_id=4711, entry_id=index)
        acks += encode(BaseCommand(type=BaseCommand.ACK, ack=ack))
    kernel = load("sends", plain=False)
    run: SendRun = kernel.take_sends(sends, 0, len(sends), 36, 1 << 20)
    load("entries", plain=False).seal(run.entries, 4711, 0, -1, 0)
    stored = EntryRun(4711, 0, run.entries.buffer, run.entries.offsets)
    return Sample(title, count, sends, acks, run, stored)


def calls(of: Sample, kernels: dict[str, Any]) -> list[tuple[str, Callable[[], object]]]:
    """Measured calls, each with one sample."""
    sends, entries, messages, metadata, acks = (kernels[name] for name in NAMES)
    everything = range(of.count)
    every_second = array("q", range(0, of.count, 2)) * 2 if of.count > 1 else array("q", [0])
    return [
        ("take_sends, with CRC", lambda: sends.take_sends(of.sends, 0, len(of.sends), 36, 1 << 20)),
        ("send_receipts", lambda: sends.send_receipts(of.run, 4711, 0)),
        ("seal", lambda: entries.seal(of.run.entries, 4711, 0, -1, 0)),
        ("first_damaged", lambda: entries.first_damaged(of.stored)),
        ("message_frames, range", lambda: messages.message_frames(of.stored, everything, 1, -1, None, None, None)),
        ("message_frames, indexes", lambda: messages.message_frames(of.stored, every_second, 1, 3, None, None, 1)),
        ("scan", lambda: metadata.scan(of.stored)),
        ("key_hashes", lambda: metadata.key_hashes(of.stored)),
        ("publish_times", lambda: metadata.publish_times(of.stored)),
        ("take_acks", lambda: acks.take_acks(of.acks, 0, len(of.acks))),
    ]


def best_ns(call: Callable[[], object]) -> float:
    """Best time of one call in ns. Short calls are timed many at a time, or the clock would be measured."""
    start = time.perf_counter()
    call()
    together = max(1, min(1000, int(0.0002 / (time.perf_counter() - start + 1e-9))))
    best = float("inf")
    end = time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        for _ in range(together):
            call()
        best = min(best, (time.perf_counter() - start) / together)
    return best * 1e9


def main() -> None:
    samples = [sample("250 x 1 KB", 250, 1000), sample("1000 x 100 B", 1000, 100), sample("1 x 1 KB", 1, 1000)]
    forms = {"compiled": False, "plain": True}
    if load("sends", plain=False).__file__.endswith(".py"):  # type: ignore[union-attr]
        print("the kernels are not compiled: bin/prepare says why")
        forms = {"plain": True}
    print(f"{'ns per message':26}" + "".join(f"{f'{one.title}, {form}':>24}" for one in samples for form in forms))
    kernels = {form: {name: load(name, plain=plain) for name in NAMES} for form, plain in forms.items()}
    columns = [(one.count, calls(one, kernels[form])) for one in samples for form in forms]
    for row, (title, _) in enumerate(columns[0][1]):
        figures = [best_ns(measured[row][1]) / count for count, measured in columns]
        print(f"{title:26}" + "".join(f"{figure:24.1f}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
