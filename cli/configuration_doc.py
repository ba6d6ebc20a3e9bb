"""`python -m cli.configuration_doc` writes docs/configuration.md: the settings in effect, from the dataclasses that read them.

Owns what Apache's defaults are where ours differ, and why. A test holds that the committed page is current.
"""

import ast
import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path

from bookie.server.security.settings import BookieSecuritySettings
from bookie.server.settings import BookieServerSettings
from bookie.web.settings import BookieWebSettings
from bookkeeper.repair.settings import RepairSettings
from bookkeeper.security_settings import BookKeeperSecuritySettings
from broker.proxy.settings import ProxySettings
from cli.cluster_settings import ClusterSettings
from cli.configuration import CONF, known_keys, load_configuration
from cli.configuration_changes import AT_START_ONLY
from cli.configuration_keys import apache_broker_keys
from cli.standalone import SETTINGS
from metadata.zookeeper.settings import ZooKeeperSettings
from ports.settings import fold, setting_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

DIFFERENT: Mapping[str, tuple[str, str]] = {
    "clusterName": ("none", "a standalone needs no file to have a name"),
    "journalDirectories": ("/tmp/bk-txn", "below `--data-dir`"),
    "ledgerDirectories": ("/tmp/bk-data", "below `--data-dir`"),
    "journalMaxSizeMB": ("2048", "files are recycled: a small set is written again and again"),
    "journalAlignmentSize": ("512", "whole pages are written, so that a recycled one is not read first"),
    "journalMaxBackups": ("5", "kept beyond need; here they are the spares to recycle"),
    "journalMaxGroupWaitMSec": ("2; Pulsar sets 1", "as Pulsar; under load only: at rest nothing waits"),
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

HEAD = """# Settings in effect

Keys are Apache's. They come from `conf/standalone.conf` (or the file given with `--config`), and `--set KEY=VALUE` wins over
the file. A key that Apache does not have is refused with the nearest one that it has. One that Apache has and that is not below
is in `conf/broker-keys-without-effect.txt` (or `bookkeeper-`, `proxy-`) with the reason: it is taken with one line in the log,
or refused where it asks for something that is not there. `bin/pulsar config check FILE` tells all that for a file of yours,
`config diff FILE` what it changes, `config explain KEY` what one key does. "Dynamic" is what `pulsar-admin brokers
update-dynamic-config` changes while brokers run. Lists are separated by commas. A maximum of 0 means no limit.

This page is written by `python -m cli.configuration_doc`.
"""


def page() -> str:
    spelling = {fold(key): key for key in known_keys()}
    shipped = load_configuration([("standalone.conf", (CONF / "standalone.conf").read_text())], []).values
    parts, seen = [HEAD], set()
    for cls in (
        *SETTINGS,
        BookieServerSettings,
        BookieSecuritySettings,
        BookieWebSettings,
        RepairSettings,
        BookKeeperSecuritySettings,
        ClusterSettings,
        ZooKeeperSettings,
        ProxySettings,
    ):
        rows = []
        notes = _field_notes(cls)
        for field in dataclasses.fields(cls):
            key = spelling[fold(field.name)]
            if key not in seen:
                rows.append(_row(key, setting_text(field.default), shipped, notes.get(field.name, "")))
            seen.add(key)
        parts.append("\n".join([f"## {cls.__module__.removesuffix('.settings')}", "", *_HEADINGS, *rows]) + "\n")
    return "\n".join(parts)


_HEADINGS = ("| key | default | Apache's, where it differs | what is to be known |", "| --- | --- | --- | --- |")


def _row(key: str, default: str, shipped: Mapping[str, str], note: str) -> str:
    apache, why = DIFFERENT.get(key, ("", ""))
    in_file = f"`conf/standalone.conf` sets {shipped[key]}" if key in shipped and shipped[key] != default else ""
    is_dynamic = key in apache_broker_keys() and apache_broker_keys()[key].dynamic and key not in AT_START_ONLY
    known = ". ".join(part.rstrip(".") for part in ("Dynamic" if is_dynamic else "", note, why, in_file) if part)
    return f"| {key} | {default} | {apache} | {known} |"


def _field_notes(cls: type) -> dict[str, str]:
    """The string that stands behind a field in the source of the dataclass."""
    (node,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(node, ast.ClassDef)
    return dict(_pairs(node.body))


def _pairs(body: Iterable[ast.stmt]) -> Iterable[tuple[str, str]]:
    name = ""
    for line in body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            name = line.target.id
        elif name and isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
            yield name, " ".join(str(line.value.value).replace("|", "\\|").split())
            name = ""
        else:
            name = ""


if __name__ == "__main__":
    PAGE.write_text(page())
