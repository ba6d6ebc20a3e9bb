"""Faults of configuration files, and of this machine's limits. No server runs."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.doctor_faults.fault import FAIL, WARN, Fault, Inject, Injected
from tests.started_process import ROOT

CLUSTER = "metadataStoreUrl=zk:zk1.example:2181\nclusterName=c\n"
MEMORY_BYTES = 300 << 20
_GROUP = Path("/sys/fs/cgroup/memory/doctor-faults")


_QUORUMS = "".join(f"managedLedgerDefault{name}=2\n" for name in ("EnsembleSize", "WriteQuorum", "AckQuorum"))
Row = tuple[str, str, str, tuple[str, ...], str, str, tuple[str, ...]]
_ROWS: tuple[Row, ...] = (
    (
        "a standalone that cannot write: quorum 2, one bookie",
        "mine.conf",
        _QUORUMS,
        ("managedLedgerDefaultWriteQuorum",),
        "standalone-quorum",
        FAIL,
        ("managedLedgerDefaultEnsembleSize=1", "managedLedgerDefaultWriteQuorum=1"),
    ),
    (
        "ack quorum larger than write quorum",
        "broker.conf",
        CLUSTER + "managedLedgerDefaultAckQuorum=3\n",
        ("ack quorum 3",),
        "quorum-order",
        FAIL,
        ("managedLedgerDefaultEnsembleSize",),
    ),
    (
        "a key that nobody knows",
        "broker.conf",
        CLUSTER + "brokerServisePort=6650\n",
        ("brokerServisePort",),
        "settings-accepted",
        FAIL,
        ("brokerServicePort",),
    ),
    (
        "a value that cannot be",
        "broker.conf",
        CLUSTER + "webServicePort=http\n",
        ("webServicePort",),
        "settings-accepted",
        FAIL,
        ("webServicePort",),
    ),
    (
        "a feature that is not here",
        "broker.conf",
        CLUSTER + "functionsWorkerEnabled=true\n",
        ("functionsWorkerEnabled",),
        "settings-accepted",
        FAIL,
        ("functionsWorkerEnabled",),
    ),
    (
        "one port for two listeners",
        "broker.conf",
        CLUSTER + "brokerServicePort=8080\nwebServicePort=8080\n",
        ("brokerServicePort", "webServicePort"),
        "ports-distinct",
        FAIL,
        ("a port of its own",),
    ),
    (
        "two limits of which one is never reached",
        "broker.conf",
        CLUSTER + "maxConsumersPerSubscription=9\nmaxConsumersPerTopic=3\n",
        ("maxConsumersPerTopic",),
        "settings-contradict",
        WARN,
        ("maxConsumersPerTopic",),
    ),
    (
        "advertisedAddress of loopback in a cluster",
        "broker.conf",
        CLUSTER + "advertisedAddress=localhost\n",
        ("advertisedAddress=localhost",),
        "advertised-address",
        FAIL,
        ("set advertisedAddress",),
    ),
    (
        "bindAddress of loopback in a cluster",
        "broker.conf",
        CLUSTER + "bindAddress=127.0.0.1\n",
        ("bindAddress=127.0.0.1",),
        "advertised-address",
        FAIL,
        ("bindAddress=0.0.0.0",),
    ),
    (
        "retention with a time and no size",
        "broker.conf",
        CLUSTER + "defaultRetentionTimeInMinutes=60\n",
        (),
        "retention-and-quota",
        FAIL,
        ("defaultRetentionSizeInMB",),
    ),
    (
        "a retention below the backlog quota",
        "broker.conf",
        CLUSTER + "defaultRetentionTimeInMinutes=60\ndefaultRetentionSizeInMB=10\nbacklogQuotaDefaultLimitGB=1\n",
        (),
        "retention-and-quota",
        FAIL,
        ("backlogQuotaDefaultLimitGB",),
    ),
    (
        "authorization without authentication",
        "broker.conf",
        CLUSTER + "authorizationEnabled=true\n",
        ("authorizationEnabled=true",),
        "authorization-without-authentication",
        FAIL,
        ("authenticationEnabled=true",),
    ),
    (
        "authentication without a provider",
        "broker.conf",
        CLUSTER + "authenticationEnabled=true\n",
        (),
        "providers-named",
        FAIL,
        ("authenticationProviders",),
    ),
    (
        "disk thresholds the wrong way round",
        "bookkeeper.conf",
        "diskUsageThreshold=0.5\ndiskUsageWarnThreshold=0.9\n",
        (),
        "disk-thresholds",
        FAIL,
        ("diskUsageWarnThreshold <= diskUsageThreshold",),
    ),
    (
        "messages larger than a bookie's frames",
        "broker.conf",
        CLUSTER + "maxMessageSize=9000000\n",
        ("9000000",),
        "message-size",
        FAIL,
        ("nettyMaxFrameSizeBytes",),
    ),
    (
        "a session of half a second",
        "broker.conf",
        CLUSTER + "metadataStoreSessionTimeoutMillis=500\n",
        ("500 ms",),
        "session-length",
        WARN,
        ("metadataStoreSessionTimeoutMillis",),
    ),
    (
        "acknowledged before it is on the disk",
        "bookkeeper.conf",
        "journalSyncData=false\n",
        ("journalSyncData=false",),
        "journal-synced",
        WARN,
        ("journalSyncData=true",),
    ),
)
"""Name, file, text, things, check, level, remedy."""


def faults() -> list[Fault]:
    """Each file says what is wrong by its key, which the doctor has to name."""
    return [
        *(Fault(f"control: conf/{name}", _shipped(name)) for name in ("standalone.conf", "bookkeeper.conf")),
        Fault(
            "a broker that lets everybody in",
            _shipped("broker.conf"),
            "open-to-everybody",
            WARN,
            ("authenticationEnabled=true",),
        ),
        *(Fault(row[0], _file(row[1], row[2], *row[3]), *row[4:]) for row in _ROWS),
        Fault("a port that another process has", _port_in_use, "ports-free", remedy=("ss -ltnp",)),
        Fault("512 open files allowed", _few_files, "open-files-limit", remedy=("nofile to 65536",)),
        Fault("a limit of memory nearly reached", _little_memory, "memory-limit", WARN, ("raise the limit of memory",)),
    ]


def _shipped(name: str) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        yield Injected(("--offline", "--data-dir", own, "--config", ROOT / "conf" / name))

    return inject


def _file(name: str, text: str, *things: str) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        (own / name).write_text(text)
        yield Injected(("--offline", "--data-dir", own, "--config", own / name), things)

    return inject


@contextmanager
def _port_in_use(own: Path) -> Iterator[Injected]:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        (own / "standalone.conf").write_text(f"webServicePort={port}\n")
        yield Injected(("--offline", "--data-dir", own, "--config", own / "standalone.conf"), (f"webServicePort={port}",))


@contextmanager
def _few_files(own: Path) -> Iterator[Injected]:
    yield Injected(("--offline", "--data-dir", own), ("512",), prefix=("sh", "-c", 'ulimit -n 512; exec "$@"', "sh"))


@contextmanager
def _little_memory(own: Path) -> Iterator[Injected]:
    """Limits memory by a control group where one may be made, else by the shell's limit of address space."""
    with contextlib.ExitStack() as ending:
        lower = f'ulimit -v {MEMORY_BYTES >> 10}; exec "$@"'
        with contextlib.suppress(OSError):  # no control groups of version 1 that this user may make
            _GROUP.mkdir()
            ending.callback(_GROUP.rmdir)
            (_GROUP / "memory.limit_in_bytes").write_text(str(MEMORY_BYTES))
            lower = f'echo $$ > {_GROUP}/cgroup.procs; exec "$@"'
        things = (f"{MEMORY_BYTES >> 20} MiB",)
        yield Injected(("--offline", "--data-dir", own), things, prefix=("sh", "-c", lower, "sh"))
