"""Bookies, copies and ledgers of a cluster. Pure; what is on a bookie's own disks is `storage_checks`."""

from collections.abc import Mapping
from typing import NamedTuple

from cli.doctor.check import FAIL, OK, WARN, Check, Verdict, named


class Bookies(NamedTuple):
    """`lost` have a cookie and are not registered; `unreachable` are registered and take no connection.

    `racks`: of each that is writable, where its place is known; `racks_min`: among how many the copies of an entry have to be,
    0 where that is no condition.
    """

    writable: tuple[str, ...]
    read_only: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    unreachable: Mapping[str, str] = {}
    ensemble: int = 1
    write_quorum: int = 1
    racks: Mapping[str, str] = {}
    racks_min: int = 0

    @property
    def serving(self) -> tuple[str, ...]:
        """Bookies that take new ledgers now."""
        return tuple(each for each in self.writable if each not in self.unreachable)


class Replication(NamedTuple):
    """Ledgers that are marked as lacking copies, the bookies that these were on, and who repairs."""

    lacking: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    is_enabled: bool = True
    auditor: str | None = None
    serving: int = 0
    write_quorum: int = 1


class Ledgers(NamedTuple):
    """Ledgers that were looked at: `lost` have a range of entries all of whose bookies are gone; no node names `orphans`."""

    looked: int
    lost: tuple[tuple[int, tuple[str, ...]], ...] = ()
    orphans: tuple[tuple[int, str], ...] = ()
    """Ledger id, and the managed ledger that it was made for."""


def bookies_present(bookies: Bookies) -> Verdict:
    refusing = [f"{name} ({problem})" for name, problem in bookies.unreachable.items()]
    gone = [*bookies.unreachable, *bookies.lost]
    if not gone:
        return Verdict(OK, f"{len(bookies.writable) + len(bookies.read_only)} bookies, all of them there")
    evidence = []
    if refusing:
        evidence.append(f"registered, but cannot be reached: {named(refusing)}")
    if bookies.lost:
        evidence.append(f"known by their cookies, but not registered: {named(bookies.lost)}")
    remedy = (
        f"start the bookie {gone[0]} again on its directories (interpulse bookie), or see why it ended: its log, its "
        "disk, the network. "
        f"Only if its disks are lost for good: bookkeeper shell decommissionbookie -bookieid {gone[0]}, which waits "
        "until every ledger "
        "has its copies elsewhere"
    )
    return Verdict(FAIL, "; ".join(evidence), remedy)


def bookies_enough(bookies: Bookies) -> Verdict:
    count = len(bookies.serving)
    evidence = f"{count} writable bookies; a ledger wants {bookies.ensemble}, an entry {bookies.write_quorum} copies"
    lacking = bookies.ensemble - count
    remedy = (
        f"start {max(1, lacking)} more bookie{'s' if lacking > 1 else ''} (interpulse bookie), or those that are down; "
        "with fewer for good, lower "
        f"managedLedgerDefaultEnsembleSize and managedLedgerDefaultWriteQuorum to {max(1, count)} in broker.conf, which "
        "means fewer copies"
    )
    if lacking > 0:
        return Verdict(FAIL, f"{evidence}: no ledger can be made, so publishing fails", remedy)
    remedy = f"add a bookie: with {count} the next one that is lost stops new ledgers, and its copies have nowhere to go"
    return Verdict(
        WARN if not lacking and bookies.ensemble > 1 and (bookies.lost or bookies.unreachable) else OK, evidence, remedy
    )


def racks_enough(bookies: Bookies) -> Verdict:
    racks = sorted({bookies.racks.get(each, "/default-rack") for each in bookies.serving})
    wanted = min(bookies.racks_min, bookies.write_quorum)
    if len(racks) >= wanted:
        return Verdict(OK, f"{len(racks)} racks, {wanted} wanted")
    remedy = (
        "start a bookie in another rack, or say where they are: pulsar-admin bookies set-bookie-rack -b "
        f"{(bookies.serving or ('BOOKIE',))[0]} "
        "-r /RACK; or set bookkeeperClientEnforceMinNumRacksPerWriteQuorum=false"
    )
    return Verdict(
        FAIL, f"copies have to be in {wanted} racks, and all writable bookies are in {named(racks) or 'none'}", remedy
    )


def bookies_read_only(bookies: Bookies) -> Verdict:
    if not bookies.read_only:
        return Verdict(OK, "none is read-only")
    remedy = (
        f"free the disk of {bookies.read_only[0]} (it is over diskUsageThreshold; its log says which directory), or unset "
        "forceReadOnlyBookie: it takes writes again by itself. It still serves reads: do not decommission it for this"
    )
    return Verdict(WARN, f"{len(bookies.read_only)} take no writes: {named(bookies.read_only)}", remedy)


def under_replication(state: Replication) -> Verdict:
    if not state.lacking:
        is_off = "" if state.is_enabled else "; autorecovery is disabled"
        return Verdict(OK, f"no ledger is marked as lacking copies{is_off}")
    evidence = (
        f"{len(state.lacking)} ledgers lack copies ({named([str(each) for each in state.lacking])}), which were on "
        f"{named(state.missing)}"
    )
    first = state.missing[0] if state.missing else "the lost bookie"
    back = f"or start {first} again, which has them"
    if not state.is_enabled:
        remedy = f"bookkeeper shell autorecovery -enable: it is disabled, so that lost copies are not repaired; {back}"
        return Verdict(WARN, f"{evidence}; autorecovery is disabled", remedy)
    if state.auditor is None:
        remedy = f"run interpulse autorecovery: none runs; {back}"
        return Verdict(WARN, f"{evidence}; no autorecovery runs", remedy)
    if state.serving < state.write_quorum:
        remedy = f"start a bookie: autorecovery runs, and {state.serving} bookies have no place for another copy; {back}"
        return Verdict(WARN, f"{evidence}; {state.serving} writable bookies for {state.write_quorum} copies", remedy)
    remedy = (
        f"wait: autorecovery runs (the auditor is {state.auditor}) and is enabled. If the number does not fall, read its "
        "log and "
        f"bookkeeper shell queryautorecoverystatus; {back}"
    )
    return Verdict(WARN, f"{evidence}; autorecovery copies them", remedy)


def ledgers_readable(ledgers: Ledgers) -> Verdict:
    if not ledgers.lost:
        return Verdict(OK, f"of {ledgers.looked} ledgers each has a bookie for every entry")
    ledger_id, bookies = ledgers.lost[0]
    remedy = (
        f"start the bookies that hold ledger {ledger_id} on their directories: {named(bookies)}. Do not delete the "
        "ledger, and do not "
        "decommission these bookies: its entries are nowhere else"
    )
    names = named([str(each) for each, _ in ledgers.lost])
    return Verdict(
        FAIL, f"{len(ledgers.lost)} of {ledgers.looked} ledgers have entries on bookies alone that are gone: {names}", remedy
    )


def orphan_ledgers(ledgers: Ledgers) -> Verdict:
    if not ledgers.orphans:
        return Verdict(OK, f"of {ledgers.looked} ledgers each is somebody's")
    ledger_id, owner = ledgers.orphans[0]
    remedy = (
        f"make sure that nobody needs it (bookkeeper shell ledgermetadata -ledgerid {ledger_id}, readledger -l "
        f"{ledger_id}): it was made for "
        f"{owner}, which does not name it; bookkeeper shell deleteledger -ledgerid {ledger_id} then frees its disk, "
        "and loses its entries"
    )
    return Verdict(
        WARN, f"{len(ledgers.orphans)} ledgers that nobody names: {named([str(each) for each, _ in ledgers.orphans])}", remedy
    )


def cookies_registered(told: str) -> Verdict:
    return Verdict(FAIL, told) if told else Verdict(OK, "the cluster knows this bookie by these directories")


_B = ("bookies",)
CHECKS = (
    Check(
        "bookies-present", _B, bookies_present, "a bookie is dead, or cannot be reached", "start it again on its directories"
    ),
    Check("bookies-enough", _B, bookies_enough, "too few bookies for the quorums", "start more bookies"),
    Check(
        "racks-enough", _B, racks_enough, "too few racks for the placement that is enforced", "set-bookie-rack, or more racks"
    ),
    Check("bookies-read-only", _B, bookies_read_only, "a bookie takes no writes", "free its disk"),
    Check(
        "under-replication",
        ("replication",),
        under_replication,
        "ledgers lack copies",
        "as autorecovery is: enable, run, or wait",
    ),
    Check("ledgers-readable", ("ledgers",), ledgers_readable, "ledgers whose bookies are all gone", "start these bookies"),
    Check(
        "orphan-ledgers",
        ("ledgers",),
        orphan_ledgers,
        "ledgers that no topic names",
        "look, then deleteledger, which loses them",
    ),
    Check(
        "cookie-registered",
        ("cookie",),
        cookies_registered,
        "the cluster knows this bookie with other directories",
        "give the bookie the journalDirectories, ledgerDirectories and address that its cookie names (bookkeeper "
        "shell cookie_get); do "
        "not delete the cookie: a bookie with empty directories would deny what it has acknowledged",
    ),
)
