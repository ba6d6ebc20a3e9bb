"""Commands about repair: who audits, which ledgers lack copies, whether repair is on, and having the auditor look now."""

import time
from datetime import UTC, datetime

from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.auditor.election import elected_auditor
from cli.bookkeeper_cluster.cluster import Cluster, ClusterFailed, NotThere
from cli.bookkeeper_cluster.replication import CHECKS, lacking, marks_in, recovery_delay_seconds, reset_check
from cli.bookkeeper_cluster.replication import trigger_audit as audit
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given, WrongUsage

RESET_BY_MS = 21 * 24 * 60 * 60 * 1000
"""Three weeks, as Apache: no check is rarer."""


async def list_underreplicated(shell: Shell, given: Given) -> int:
    count = 0
    async with shell.metadata() as store:
        async for each in lacking(store, given.text("mr"), given.text("emr")):
            count += 1
            if given.has("c"):
                continue
            shell.say(shell.ledger(each.ledger_id))
            if each.what.since_ms is not None:
                shell.say(f"\tCtime : {each.what.since_ms}")
            for missing in each.what.missing_replicas if given.has("pmr") else ():
                shell.say(f"\tMissingReplica : {missing}")
            if given.has("prw") and each.worker is not None:
                shell.say(f"\tReplicationWorkerId : {each.worker}")
    shell.say(f"Under replicated ledger count: {count}")
    return 0


async def who_is_auditor(shell: Shell, given: Given) -> int:
    async with shell.metadata() as store:
        auditor = await elected_auditor(store)
    if auditor is None:
        raise NotThere("No auditor elected")
    shell.say(f"Auditor: {auditor}")
    return 0


async def autorecovery(shell: Shell, given: Given) -> int:
    """Apache's options, and `status`, `enable`, `disable` as words."""
    if given.arguments[1:] or (given.arguments and given.arguments[0] not in ("status", "enable", "disable")):
        raise WrongUsage(f"unknown argument {' '.join(given.arguments)}: expected -enable, -disable or status")
    enable = given.has("e") or "enable" in given.arguments
    disable = given.has("d") or "disable" in given.arguments
    if enable and disable:
        raise WrongUsage("Only one of -enable and -disable can be specified")
    async with shell.metadata() as store:
        marks = marks_in(store)
        is_enabled = await marks.is_enabled()
        if not enable and not disable:
            shell.say(f"Autorecovery is {'enabled' if is_enabled else 'disabled'}.")
        elif enable == is_enabled:
            shell.say(f"Autorecovery already {'enabled' if enable else 'disabled'}. Doing nothing")
        else:
            shell.say(f"{'Enabling' if enable else 'Disabling'} autorecovery")
            await (marks.enable() if enable else marks.disable())
    return 0


async def query_autorecovery_status(shell: Shell, given: Given) -> int:
    count = 0
    shell.say("CurrentRecoverLedgerInfo:")
    async with shell.metadata() as store:
        cluster = Cluster(store)
        async for each in lacking(store):
            if each.worker is None:
                continue
            count += 1
            size = f"\tLedgerSize:{await _size_of(cluster, each.ledger_id)}" if given.has("v") else ""
            shell.say(f"\tLedgerId:{each.ledger_id}\tBookieId:{each.worker}{size}")
    if not count:
        shell.say("\t No Ledger is being recovered.")
    return 0


async def _size_of(cluster: Cluster, ledger_id: int) -> str:
    try:
        return str((await cluster.ledger(ledger_id)).length_bytes)
    except (ClusterFailed, LedgerError) as error:
        return f"unknown ({error})"


async def lost_bookie_recovery_delay(shell: Shell, given: Given) -> int:
    if given.has("g") == given.has("s"):
        raise WrongUsage("One and only one of -get and -set must be specified")
    async with shell.metadata() as store:
        marks = marks_in(store)
        if given.has("g"):
            shell.say(f"LostBookieRecoveryDelay value in ZK: {await recovery_delay_seconds(store)}")
        else:
            seconds = given.number("s", 0)
            await marks.set_lost_bookie_recovery_delay(seconds)
            shell.say(f"Successfully set LostBookieRecoveryDelay value in ZK: {seconds}")
    return 0


async def trigger_audit(shell: Shell, given: Given) -> int:
    async with shell.metadata() as store:
        await audit(store)
    shell.say("The auditor looks for lost bookies now")
    return 0


async def force_audit_checks(shell: Shell, given: Given) -> int:
    checks = [check for check in CHECKS if given.has(check)]
    if not checks:
        raise CommandFailed("Command line args must contain atleast one type of check. This was a no-op.")
    at_ms = int(time.time() * 1000) - RESET_BY_MS
    async with shell.metadata() as store:
        for check in checks:
            await reset_check(store, check, at_ms)
            shell.say(f"Resetting {CHECKS[check][0]} to : {datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}")
    return 0
