"""Acknowledged entries are there byte for byte after every operation and every crash, and never change."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.bookie import Bookie
from tests.bookie.machines import Machine, on_machine
from tests.bookie.runs import KEY, entries_of, mixed, sealed
from wire.bookie.codes import BookieCode, BookieError, NotAsOne
from wire.run import EntryRun

Place = tuple[int, int]


@dataclass
class Model:
    """The naive twin: for each entry what a read may give (None: no such entry), and which ledgers are fenced."""

    may_be: dict[Place, list[bytes | None]] = field(default_factory=dict)
    fenced: dict[int, bool | None] = field(default_factory=dict)
    pending: list[tuple[EntryRun, "asyncio.Future[None]"]] = field(default_factory=list)

    def submitted(self, run: EntryRun, future: "asyncio.Future[None]") -> None:
        self.pending.append((run, future))
        for entry_id, data in entries_of(run).items():
            self.may_be.setdefault((run.ledger_id, entry_id), [None]).append(data)

    def settle(self) -> None:
        """Take note of the acknowledgements; none of a ledger may overtake another."""
        rest = []
        open_ledgers = set()
        for run, future in self.pending:
            if not future.done():
                rest.append((run, future))
                open_ledgers.add(run.ledger_id)
                continue
            if isinstance(future.exception(), NotAsOne):
                continue
            assert run.ledger_id not in open_ledgers, "acknowledged out of order"
            if (error := future.exception()) is not None:
                assert isinstance(error, BookieError)
                assert error.code is BookieCode.ETOOMANYREQUESTS
                continue
            for entry_id, data in entries_of(run).items():
                values = self.may_be[run.ledger_id, entry_id]
                del values[: values.index(data)]
        self.pending = rest


async def check(bookie: Bookie, model: Model) -> None:
    """Every entry is one of those that it may be, and from now on only that one."""
    for (ledger_id, entry_id), values in model.may_be.items():
        found = await read_one(bookie, ledger_id, entry_id)
        assert found in values, f"{ledger_id}:{entry_id}"
        model.may_be[ledger_id, entry_id] = [found]
    await check_runs(bookie, model)
    for ledger_id, fenced in model.fenced.items():
        if fenced:
            with pytest.raises(BookieError) as caught:
                await bookie.add(sealed(ledger_id, 0), KEY)
            assert caught.value.code is BookieCode.EFENCED


async def read_one(bookie: Bookie, ledger_id: int, entry_id: int) -> bytes | None:
    try:
        return entries_of(await bookie.read(ledger_id, entry_id, 1, 1))[entry_id]
    except BookieError as error:
        if error.code not in (BookieCode.ENOENTRY, BookieCode.ENOLEDGER):
            raise
        return None


async def check_runs(bookie: Bookie, model: Model) -> None:
    """Reading on from each entry gives the same bytes as reading it alone."""
    for ledger_id, entry_id in model.may_be:
        if model.may_be[ledger_id, entry_id] == [None]:
            continue
        run = await bookie.read(ledger_id, entry_id, 5, 1 << 20)
        assert run.first_entry_id == entry_id
        for place, data in entries_of(run).items():
            assert model.may_be[ledger_id, place] == [data]


Step = tuple[str, int, int, int, int]
ledgers = st.integers(1, 3)
mixes = st.tuples(st.just("mix"), ledgers, st.integers(1, 4), st.integers(1, 30_000), st.just(0))
adds = st.tuples(st.just("add"), ledgers, st.integers(1, 4), st.integers(1, 60_000), st.just(0))
overwrites = st.tuples(st.just("recover"), ledgers, st.integers(1, 6), st.integers(1, 30_000), st.integers(0, 8))
steps = st.one_of(
    adds,
    adds,
    adds,
    overwrites,
    mixes,
    mixes,
    st.tuples(st.sampled_from(["settle", "flush", "fence", "read"]), ledgers, st.just(0), st.just(0), st.just(0)),
    st.tuples(st.just("wait"), ledgers, st.integers(0, 20), st.just(0), st.just(0)),
    st.tuples(st.sampled_from(["kill", "cut"]), ledgers, st.just(0), st.just(0), st.just(0)),
)


def submit(bookie: Bookie, model: Model, next_ids: dict[int, int], number: int, step: Step) -> None:
    what, ledger_id, count, size, back = step
    if what == "mix":
        runs = [sealed(each, next_ids.get(each, 0), count, size, fill=number) for each in bookie.writable_ledgers]
        add_mix(bookie, model, runs)
    elif what == "recover" or model.fenced.get(ledger_id, False) is False:
        runs = [sealed(ledger_id, max(0, next_ids.get(ledger_id, 0) - back), count, size, fill=number)]
        model.submitted(runs[0], bookie.add(runs[0], KEY, recovery=what == "recover"))
    else:
        return
    next_ids.update({run.ledger_id: max(next_ids.get(run.ledger_id, 0), run.last_entry_id + 1) for run in runs})


async def perform(machine: Machine, model: Model, plan: list[Step]) -> None:
    await machine.start()
    next_ids: dict[int, int] = {}
    for number, (what, ledger_id, count, size, back) in enumerate(plan):
        bookie = machine.bookie
        if what in ("add", "recover", "mix"):
            submit(bookie, model, next_ids, number, (what, ledger_id, count, size, back))
        elif what == "settle":
            await asyncio.gather(*[future for _, future in model.pending], return_exceptions=True)
            model.settle()
        elif what == "wait":
            await asyncio.sleep(count / 10_000)
        elif what == "flush":
            await bookie.flush()
        elif what == "fence":
            model.fenced[ledger_id] = None
            await bookie.fence(ledger_id, KEY)
            model.fenced[ledger_id] = True
        elif what == "read":
            await asyncio.gather(*[future for _, future in model.pending], return_exceptions=True)
            model.settle()
            await check(bookie, model)
        else:
            await crash_and_check(machine, model, power_cut=what == "cut")
    await crash_and_check(machine, model, power_cut=True)
    await crash_and_check(machine, model, power_cut=True)


def add_mix(bookie: Bookie, model: Model, runs: list[EntryRun]) -> None:
    if runs:
        future = bookie.add_mix(mixed(runs), KEY)
        for run in runs:
            model.submitted(run, future)


async def crash_and_check(machine: Machine, model: Model, *, power_cut: bool) -> None:
    model.settle()
    machine.crash(power_cut=power_cut)
    model.pending.clear()
    bookie = await machine.start()
    await check(bookie, model)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=40), st.integers(0, 1 << 30))
def test_every_acknowledged_entry_survives_any_sequence_of_crashes(plan: list[Step], seed: int) -> None:
    on_machine(lambda machine: perform(machine, Model(), plan), seed)


async def busy_life(machine: Machine, model: Model) -> None:
    """Adds that roll journal files and entry logs, flushes, a fence; ends when the machine does."""
    await machine.start()
    bookie = machine.bookie
    for number in range(18):
        run = sealed(1 + number % 2, number // 2 * 3, 3, 25_000, fill=number)
        if number % 4 == 3 and run.ledger_id in bookie.writable_ledgers:
            add_mix(bookie, model, [run, sealed(1, 100 + number, 2, 5_000, fill=number)])
        else:
            model.submitted(run, bookie.add(run, KEY))
        await asyncio.sleep(0.003)
        model.settle()
        if number == 12:
            await bookie.fence(3, KEY)
            model.fenced[3] = True
    await bookie.flush()
    model.settle()
    await bookie.stop()


def steps_of_a_busy_life() -> int:
    async def count(machine: Machine) -> int:
        await busy_life(machine, Model())
        return machine.disk.steps

    steps: int = on_machine(count)
    return steps


@pytest.mark.parametrize("power_cut", [True, False])
def test_a_crash_at_each_call_of_the_disk_loses_nothing_acknowledged(power_cut: bool) -> None:
    total = steps_of_a_busy_life()
    assert total > 120

    async def scenario(machine: Machine, at: int) -> None:
        model = Model()
        ended = machine.loop.create_future()

        def on_step(step: int) -> None:
            if step == at:
                machine.loop.call_soon(ended.set_result, None)

        machine.disk.on_step = on_step
        life = machine.loop.create_task(busy_life(machine, model))
        await asyncio.wait([life, ended], return_when=asyncio.FIRST_COMPLETED)
        life.cancel()
        await crash_and_check(machine, model, power_cut=power_cut)
        await crash_and_check(machine, model, power_cut=True)

    for at in range(1, total + 1):
        on_machine(lambda machine, at=at: scenario(machine, at), seed=at)  # type: ignore[misc]
