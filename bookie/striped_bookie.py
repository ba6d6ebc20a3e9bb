"""StripedBookie: a bookie with several directories, each ledger on one of its stripes (`bookie.stripes`).

Each stripe is a whole bookie: its own journal, memtables, entry logs and checkpoint, so that a mark speaks of the one journal
and the one ledger directory that belong together. Apache's bookie has a mark of every journal in every ledger directory, of
which a start must take the least and took the greatest (apache/bookkeeper#3329).
The bookie is read-only when one of its stripes is (readOnlyModeOnAnyDiskFullEnabled, Apache's default).
"""

import asyncio
from collections.abc import Iterable, Sequence

from bookie.bookie import Bookie
from bookie.errors import WrongDirectory
from bookie.reads.placed_entries import PlacedEntries
from bookie.settings import BookieSettings
from bookie.storage.storage import CHECKPOINT
from bookie.stripes import stripe_settings
from ports.clock import Clock
from ports.disk.disk import Disk
from ports.disk.disk_usage import DiskUsage
from ports.rng import Rng
from wire.run import EntryRun


class StripedBookie:
    """Bookie on several pairs of directories. Belongs to one event loop."""

    def __init__(
        self, disk: Disk, settings: BookieSettings, clock: Clock, rng: Rng, *, instance_id: str = "", was_known: bool = False
    ) -> None:
        self._disk = disk
        self._ledger_directories = settings.ledger_directories
        self._settings = stripe_settings(settings)
        self._may_be_lost = was_known and settings.allows_limbo
        count = len(self._settings)
        self.stripes = tuple(
            Bookie(disk, part, clock, rng, instance_id=instance_id, stripe=(index, count), was_known=was_known)
            for index, part in enumerate(self._settings)
        )

    def _of(self, ledger_id: int) -> Bookie:
        return self.stripes[ledger_id % len(self.stripes)]

    # Life

    async def start(self) -> None:
        """Start as `Bookie.start` does, the first stripe last: once its directories are in use, those of all others must be."""
        in_use = await self._in_use()
        if in_use[0]:
            self._refuse_unless(all(in_use), in_use.index(False) if False in in_use else 0)
        started: list[Bookie] = []
        try:
            for stripe in reversed(self.stripes):
                if stripe is self.stripes[0] and not in_use[0]:
                    self._refuse_unless(not any(other.ledger_ids() for other in started), 0)
                await stripe.start()
                started.append(stripe)
        except BaseException:
            for stripe in started:
                await stripe.stop()
            raise

    async def _in_use(self) -> list[bool]:
        return [await self._disk.exists(f"{part.ledger_directory}/{CHECKPOINT}") for part in self._settings]

    def _refuse_unless(self, is_right: bool, index: int) -> None:
        if not is_right and not self._may_be_lost:
            part = self._settings[index]
            raise WrongDirectory(
                f"{part.ledger_directory} and {part.journal_directory} were never used, and other directories of this bookie "
                "were: are they mounted? were they emptied? Their number and order stay what they were at the first start"
            )

    async def stop(self) -> None:
        """Stop as `Bookie.stop` does."""
        for stripe in self.stripes:
            await stripe.stop()

    async def until_it_must_end(self) -> None:
        """Wait as `Bookie.until_it_must_end` does."""
        waiters = [asyncio.create_task(stripe.until_it_must_end()) for stripe in self.stripes]
        try:
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()

    # BookieClient, and what the port asks for

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        return self._of(run.ledger_id).add(run, master_key, recovery=recovery)

    def mixing_for(self, ledger_id: int) -> Bookie:
        """The ledger's stripe: several each have their own journal."""
        return self._of(ledger_id)

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        return await self._of(ledger_id).read(ledger_id, first_entry_id, count_max, bytes_max)

    async def pick(self, wanted: Sequence[tuple[int, Sequence[int]]], bytes_max: int) -> list[EntryRun]:
        found: list[EntryRun] = []
        for index, stripe in enumerate(self.stripes):
            theirs = [each for each in wanted if each[0] % len(self.stripes) == index]
            if theirs:
                found += await stripe.pick(theirs, bytes_max - sum(run.size_bytes for run in found))
        return found

    async def placed(self, ledger_id: int, ranges: Sequence[tuple[int, int]]) -> list[PlacedEntries]:
        return await self._of(ledger_id).placed(ledger_id, ranges)

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        return await self._of(ledger_id).fence(ledger_id, master_key)

    async def ensure_fenced(self, ledger_id: int, master_key: bytes) -> None:
        await self._of(ledger_id).ensure_fenced(ledger_id, master_key)

    def claim(self, ledger_id: int, master_key: bytes, what: str) -> None:
        self._of(ledger_id).claim(ledger_id, master_key, what)

    async def last_add_confirmed(self, ledger_id: int) -> int:
        return await self._of(ledger_id).last_add_confirmed(ledger_id)

    async def last_entry_id(self, ledger_id: int) -> int:
        return await self._of(ledger_id).last_entry_id(ledger_id)

    def entry_ranges(self, ledger_id: int) -> list[tuple[int, int]]:
        return self._of(ledger_id).entry_ranges(ledger_id)

    async def usage(self) -> DiskUsage:
        """Usage of the disks with the entry logs, together. OSError."""
        usages = (await self.usages()).values()
        return DiskUsage(sum(usage.total_bytes for usage in usages), sum(usage.free_bytes for usage in usages))

    async def usages(self) -> dict[str, DiskUsage]:
        """Usage of disks by directory. OSError."""
        return {directory: await self._disk.usage(directory) for directory in self._ledger_directories}

    # Keeping house

    @property
    def read_only_reason(self) -> str:
        reasons = {stripe.read_only_reason: None for stripe in self.stripes if stripe.read_only_reason}
        return "; ".join(reasons)

    @property
    def publish_refusal(self) -> str:
        return next((stripe.publish_refusal for stripe in self.stripes if stripe.publish_refusal), "")

    def ledger_ids(self) -> list[int]:
        return sorted(ledger_id for stripe in self.stripes for ledger_id in stripe.ledger_ids())

    @property
    def needs_limbo(self) -> bool:
        return any(stripe.needs_limbo for stripe in self.stripes)

    async def enter_limbo(self, ledger_ids: Iterable[int]) -> None:
        wanted = list(ledger_ids)
        for stripe in self.stripes:
            if stripe.needs_limbo:
                await stripe.enter_limbo(ledger_id for ledger_id in wanted if self._of(ledger_id) is stripe)

    async def leave_limbo(self, ledger_ids: Iterable[int]) -> None:
        wanted = list(ledger_ids)
        for stripe in {self._of(ledger_id): None for ledger_id in wanted}:
            await stripe.leave_limbo([ledger_id for ledger_id in wanted if self._of(ledger_id) is stripe])

    def limbo_ids(self) -> list[int]:
        return sorted(ledger_id for stripe in self.stripes for ledger_id in stripe.limbo_ids())

    def held_ranges(self, ledger_id: int) -> list[tuple[int, int]]:
        return self._of(ledger_id).held_ranges(ledger_id)

    async def rewrite(self, run: EntryRun) -> None:
        await self._of(run.ledger_id).rewrite(run)

    async def flush(self) -> None:
        for stripe in self.stripes:
            await stripe.flush()

    async def compact(self, forced: str | None = None) -> None:
        for stripe in self.stripes:
            await stripe.compact(forced)

    def at_rest(self, ledger_id: int) -> int | None:
        return self._of(ledger_id).at_rest(ledger_id)

    async def delete(self, ledger_ids: Iterable[int], *, are_elsewhere: bool = False) -> None:
        wanted = list(ledger_ids)
        for index, stripe in enumerate(self.stripes):
            part = [ledger_id for ledger_id in wanted if ledger_id % len(self.stripes) == index]
            await stripe.delete(part, are_elsewhere=are_elsewhere)


AnyBookie = Bookie | StripedBookie


def lacks_room(bookie: AnyBookie) -> bool:
    """Some disk of it does."""
    return any(stripe.health.lacks_room for stripe in bookie.stripes)


def make_bookie(
    disk: Disk, settings: BookieSettings, clock: Clock, rng: Rng, *, instance_id: str = "", was_known: bool = False
) -> AnyBookie:
    """Bookie with as many stripes as the settings' directories ask for."""
    kind = Bookie if len(stripe_settings(settings)) == 1 else StripedBookie
    return kind(disk, settings, clock, rng, instance_id=instance_id, was_known=was_known)


async def is_in_use(disk: Disk, settings: BookieSettings) -> bool:
    """One of the directories has been used by a bookie."""
    return any([await disk.exists(f"{part.ledger_directory}/{CHECKPOINT}") for part in stripe_settings(settings)])
