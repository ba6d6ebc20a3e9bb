"""Durable state of managed ledgers, in the files that the Java program reads and writes, and their visible state.

File `metadata`: a line `path TAB value in hex` for each node. File `ledgers`: a line `id TAB open|closed` for each ledger and
below it a line `TAB entry in hex` for each of its entries. File `state`: the visible state, as sorted lines.
"""

from pathlib import Path

from managed_ledger.contract import EARLIEST, ManagedCursor
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from metadata.store import MetadataStore
from tests.managed_ledger.fake_ledgers import FakeLedger, FakeLedgers, batch, payloads
from tests.managed_ledger.ledger_world import World
from wire.kernels.entries import seal
from wire.position import Position
from wire.run import EntryRun

PARENT = "/managed-ledgers/public/default/persistent"
NAMESPACE = "public/default/persistent/"


async def names(world: World) -> list[str]:
    return [NAMESPACE + child for child in await world.store.children(PARENT)]


async def load(world: World, directory: Path) -> None:
    for line in (directory / "metadata").read_text().splitlines():
        path, value = line.split("\t")
        await world.store.put(path, bytes.fromhex(value))
    ledger: FakeLedger | None = None
    is_closed = False
    for line in (directory / "ledgers").read_text().splitlines():
        first, second = line.split("\t")
        if first:
            _end(ledger, is_closed)
            ledger, is_closed = FakeLedger(int(first), {}), second == "closed"
            world.shared.ledgers[ledger.ledger_id] = ledger
            world.shared.next_id = max(world.shared.next_id, ledger.ledger_id)
        else:
            assert ledger is not None
            _add(ledger, bytes.fromhex(second))
    _end(ledger, is_closed)


def _add(ledger: FakeLedger, payload: bytes) -> None:
    last = ledger.stored_last
    entry = batch(payload)
    seal(entry, ledger.ledger_id, last + 1, last, ledger.length_bytes)
    ledger.runs.append(EntryRun(ledger.ledger_id, last + 1, entry.buffer, entry.offsets, entry.header_bytes))


def _end(ledger: FakeLedger | None, is_closed: bool) -> None:
    if ledger is not None and is_closed:
        ledger.is_fenced, ledger.last_entry_id = True, ledger.stored_last


async def dump(world: World, directory: Path) -> None:
    nodes = await _nodes(world.store, PARENT)
    for name, lines in (("metadata", nodes), ("ledgers", _ledgers(world.shared))):
        _write(directory / name, lines)


def _write(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines))


async def _nodes(store: MetadataStore, parent: str) -> list[str]:
    lines: list[str] = []
    for child in await store.children(parent):
        path = f"{parent}/{child}"
        found = await store.get(path)
        assert found is not None
        lines += [f"{path}\t{found.value.hex()}\n", *await _nodes(store, path)]
    return lines


def _ledgers(shared: FakeLedgers) -> list[str]:
    lines: list[str] = []
    for ledger_id, ledger in sorted(shared.ledgers.items()):
        lines.append(f"{ledger_id}\t{'closed' if ledger.is_fenced else 'open'}\n")
        lines += [f"\t{payload.hex()}\n" for run in ledger.runs for payload in payloads(run)]
    return lines


def state_lines(directory: Path) -> list[str]:
    return (directory / "state").read_text().splitlines()


async def state_of(ledger: StoredManagedLedger) -> list[str]:
    """Visible state in the form that the Java program's class State writes."""
    lines = [f"{ledger.name}\tledger\tterminated\t{str(ledger.is_terminated).lower()}"]
    lines += [f"{ledger.name}\tproperty\t{key}\t{value}" for key, value in ledger.properties.items()]
    positions: list[Position] = []
    at = EARLIEST
    while (run := await ledger.read(at, 100, 1 << 20)) is not None:
        for offset, payload in enumerate(payloads(run)):
            positions.append(Position(run.ledger_id, run.first_entry_id + offset))
            lines.append(f"{ledger.name}\tentry\t{_text(positions[-1])}\t{payload.decode()}")
        at = Position(run.ledger_id, run.last_entry_id + 1)
    for cursor in ledger.cursors.values():
        prefix = f"{ledger.name}\tcursor {cursor.name}\t"
        mark = cursor.mark_delete
        if positions and mark < positions[0]:  # Apache names the first ledger, as soon as there is one
            mark = ledger.previous_position(positions[0])
        lines += [f"{prefix}mark\t{_text(mark)}", *_state_of_cursor(cursor, prefix, positions)]
    return sorted(lines)


def _state_of_cursor(cursor: ManagedCursor, prefix: str, positions: list[Position]) -> list[str]:
    lines = [f"{prefix}backlog\t{cursor.backlog_entries()}"]
    lines += [f"{prefix}position property\t{key}\t{value}" for key, value in cursor.properties.items()]
    lines += [f"{prefix}cursor property\t{key}\t{value}" for key, value in cursor.cursor_properties.items()]
    for position in positions:
        if cursor.is_acknowledged(position):
            lines.append(f"{prefix}acknowledged\t{_text(position)}")
        words = cursor.unacknowledged_batch_indexes(position)
        if words is not None:
            lines.append(f"{prefix}left of batch\t{_text(position)}\t{' '.join(f'{word:x}' for word in words)}")
    return lines


def _text(position: Position) -> str:
    return f"{position.ledger_id}:{position.entry_id}"
