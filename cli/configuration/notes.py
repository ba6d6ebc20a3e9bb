"""Notes on a setting: the sentence behind its field, its unit, and why its default is not Apache's.

Owns what Apache's defaults are where ours differ. For `interpulse config explain` and docs/configuration.md.
"""

import ast
import functools
import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping

DIFFERENT: Mapping[str, tuple[str, str]] = {
    "clusterName": ("none", "a standalone needs no file to have a name"),
    "journalDirectories": ("/tmp/bk-txn", "below `--data-dir`"),
    "ledgerDirectories": ("/tmp/bk-data", "below `--data-dir`"),
    "journalMaxSizeMB": ("2048", "files are recycled: a small set is written again and again"),
    "journalAlignmentSize": ("512", "whole pages are written, so that a recycled one is not read first"),
    "journalMaxBackups": ("5", "kept beyond need; here they are the spares to recycle"),
    "journalFlushWhenQueueEmpty": ("false", "an entry that is alone waits for nobody"),
    "journalMaxGroupWaitMSec": ("2; Pulsar sets 1", "as Pulsar; at rest nothing waits (`journalFlushWhenQueueEmpty`)"),
    "journalSyncData": ("true; Pulsar's standalone sets false", "false is refused with a log line: acknowledged means fsynced"),
    "dbStorage_writeCacheMaxSizeMb": ("a quarter of direct memory", "there is no JVM to take a share of; both tables together"),
    "dbStorage_readAheadCacheMaxSizeMb": ("a quarter of direct memory", "there is no JVM to take a share of"),
    "dbStorage_directIOEntryLogger": ("false", "`docs/adr/0015-entry-logs-bypass-the-page-cache.md`"),
    "flushInterval": ("10000; Pulsar sets 60000", "as Pulsar"),
    "logSizeLimit": ("1073741824", "a file is reclaimed as a whole"),
    "openFileLimit": ("none (20000 for the interleaved storage)", "entry logs open for reading"),
    "maxReadsInProgressLimit": ("0 (none)", "everything has a bound; more reads wait their turn"),
    "diskUsageLwmThreshold": ("the threshold (0.95)", "some distance, so that a disk's state does not flap"),
    "autoRecoveryDaemonEnabled": ("false; bookkeeper.conf sets true", "as bookkeeper.conf"),
    "rereplicationEntryBatchSize": ("10", "a batch costs an fsync where it is copied to"),
    "localScrubRateLimit": ("60", "blocks, not entries"),
    "managedLedgerCacheSizeMB": ("a fifth of direct memory", "bookie and cache share the buffers of what is fresh"),
    "maxPendingPublishRequestsPerConnection": ("1000", "`docs/adr/0009-what-a-connection-may-hold.md`"),
    "maxMessagePublishBufferSizeInMB": ("half of direct memory", ""),
}  # fmt: skip
"""Apache's default, and why ours is another one. Apache's: ServiceConfiguration 4.0.8, BookKeeper's ServerConfiguration."""

_UNITS = (
    ("per second", r"(RateLimit|MessageRate|InMsg|InMessages|MsgRate|MaxPerSecond)$"),
    ("milliseconds", r"(Millis|Ms|Mills|MSec|milliseconds)$"),
    ("seconds", r"(Seconds?|Secs?|Sec)$"),
    ("minutes", r"Minutes$"),
    ("MB", r"(MB|Mb|Mbytes)$"),
    ("GB", r"GB$"),
    ("bytes", r"(Bytes|ByBytes|InByte|PerTopicInBytes|Size|ByteRate)$"),
    ("percent", r"Percentage$"),
)
_OWN_UNITS = {
    **dict.fromkeys(("flushInterval", "gcWaitTime", "gcOverreplicatedLedgerWaitTime", "diskCheckInterval"), "milliseconds"),
    **dict.fromkeys(("zkTimeout", "httpProxyTimeout", "openLedgerRereplicationGracePeriod"), "milliseconds"),
    "lockReleaseOfFailedLedgerGracePeriod": "milliseconds",
    **dict.fromkeys(("minorCompactionInterval", "majorCompactionInterval", "localScrubInterval"), "seconds"),
    **dict.fromkeys(("auditorPeriodicBookieCheckInterval", "auditorPeriodicCheckInterval"), "seconds"),
    **dict.fromkeys(("auditorPeriodicPlacementPolicyCheckInterval", "lostBookieRecoveryDelay"), "seconds"),
    **dict.fromkeys(("logSizeLimit", "journalAlignmentSize", "journalBufferedWritesThreshold"), "bytes"),
    "minUsableSizeForHighPriorityWrites": "bytes",
    **dict.fromkeys(("managedLedgerDefaultEnsembleSize", "rereplicationEntryBatchSize"), ""),
    **dict.fromkeys(("dispatcherMaxReadBatchSize", "dispatcherMaxRoundRobinBatchSize"), ""),
    "dbStorage_readAheadCacheBatchSize": "",
    "managedLedgerMaxReadsInFlightPermitsAcquireQueueSize": "",
    "localScrubRateLimit": "per second",
}
"""Units of keys whose names do not tell them, or tell something else."""
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", tuple: "a list, separated by commas"}


def form_of(key: str, cls: type, field: str) -> str:
    """The form of a value: `true or false`, `a whole number, in seconds`."""
    hint = typing.get_type_hints(cls)[field]
    optional = isinstance(hint, types.UnionType)
    if optional:
        hint = next(part for part in hint.__args__ if part is not types.NoneType)
    kind = _KINDS[typing.get_origin(hint) or hint]
    unit = unit_of(key) if hint in (int, float) else ""
    return (
        kind
        + (f", in {unit}" if unit and unit != "per second" else f" {unit}" if unit else "")
        + (", or empty" if optional else "")
    )


def unit_of(key: str) -> str:
    """Empty: a count, a share, or no number."""
    if key in _OWN_UNITS:
        return _OWN_UNITS[key]
    return next((unit for unit, ending in _UNITS if re.search(ending, key)), "")


def note_of(cls: type, field: str) -> str:
    """The string that stands behind a field in the source of the dataclass; empty where there is none."""
    return _notes(cls).get(field, "")


@functools.cache
def _notes(cls: type) -> Mapping[str, str]:
    (node,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(node, ast.ClassDef)
    return dict(_pairs(node.body))


def _pairs(body: Iterable[ast.stmt]) -> Iterable[tuple[str, str]]:
    name = ""
    for line in body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            name = line.target.id
        elif name and isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
            yield name, " ".join(str(line.value.value).split())
            name = ""
        else:
            name = ""
