"""Transfers in transactions by Apache's Java client, in a cluster whose brokers and bookies are killed meanwhile.

Owns the processes, and which is hit when. `Transfers.java` checks the books; this module checks that at the end the
subscriptions have nothing left and no topic has an open transaction. Moments are counted in transactions, not in seconds.
"""

import itertools
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import NAMESPACE, get, owner_of, put, until_alone
from tests.clients.python_client import until
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from tests.started_process import END_SECONDS_MAX
from tests.toolchain import maven_classpath

SOURCE = Path(__file__).parent / "Transfers.java"
POM = Path(__file__).parent.parent.parent / "java" / "pom.xml"
BOOKIES = 3
SYSTEM = "/admin/v2/namespaces/pulsar/system"
TOPIC = "persistent://public/default/"
COMMANDS = tuple(f"{TOPIC}commands-{number}" for number in range(2))
ACCOUNTS = tuple(f"{TOPIC}account-{number}" for number in range(6))
ENDS = ("committed", "aborted", "failed")
STILL_SECONDS_MAX = 180.0
"""Longest time without a commit: after it the transfers have got stuck."""
BOOKS_SECONDS_MAX = 300.0
DEALT_SECONDS_MAX = 180.0
SYSTEM_BUNDLES = 4
"""Number of bundles, of 16, that are unloaded each time."""
SETTINGS = (
    "transactionCoordinatorEnabled=true",
    "brokerDeduplicationEnabled=true",  # a message whose receipt was lost is sent again, in the same transaction
    "acknowledgmentAtBatchIndexLevelEnabled=true",
    "managedLedgerMaxEntriesPerLedger=1000",
    "managedLedgerMinLedgerRolloverTimeMinutes=0",
    "transactionBufferSnapshotMaxTransactionCount=50",
    "transactionBufferSegmentedSnapshotEnabled=true",
    "transactionBufferSnapshotSegmentSize=1024",
)


class Program:
    """`Transfers.java`, running. `with` ends it."""

    def __init__(self, scratch: Path, url: str, threads: int, seconds: int) -> None:
        self.told: Counter[str] = Counter()
        """Number of transactions by their end, one of ENDS."""
        self.reasons: Counter[str] = Counter()
        """Why some failed."""
        self.broken: list[str] = []
        self.books: list[int] = []
        self.log = scratch / "transfers.log"
        self._times: list[float] = []
        """Monotonic times of commits."""
        self._moved = threading.Condition()
        words = [url, ",".join(COMMANDS), ",".join(ACCOUNTS), str(threads), str(seconds)]
        classpath = maven_classpath(POM, scratch)
        self._command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", classpath, str(SOURCE), *words]
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process is not None
        self._process.kill()
        self._reader.join()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout:
            for line in self._process.stdout:
                self._on_line(line.strip())
        with self._moved:
            self._moved.notify_all()

    def _on_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "broken":
            self.broken.append(rest)
        elif word == "books":
            self.books = [int(number) for number in rest.split()]
        elif word in ENDS:
            with self._moved:
                self.told[word] += 1
                if word == "failed":
                    self.reasons[rest[:200]] += 1
                elif word == "committed":
                    self._times.append(time.monotonic())
                self._moved.notify_all()

    def until_more(self, count: int, seconds_max: float = STILL_SECONDS_MAX) -> bool:
        """Waits until so many more transactions are committed; False: not within that time."""
        with self._moved:
            wanted = self.told["committed"] + count
            return (
                self._moved.wait_for(lambda: self.told["committed"] >= wanted or not self._runs(), seconds_max) and self._runs()
            )

    def _runs(self) -> bool:
        return self._reader.is_alive() or threading.current_thread() is self._reader

    def longest_still(self, since: float) -> float:
        """The longest time in seconds without a commit since then."""
        times = [since, *(at for at in self._times if at > since)]
        return max((later - at for at, later in itertools.pairwise(times)), default=0.0)

    def finish(self) -> None:
        """No more commands; all that there are are carried out, and the books are checked. AssertionError."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(BOOKS_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the books are not closed after {BOOKS_SECONDS_MAX} s: {self.told}") from None
        self._reader.join(END_SECONDS_MAX)
        assert not self.broken, (len(self.broken), self.broken[:5])
        assert code == 0, self.log.read_text()[-4000:]


@dataclass(slots=True)
class Fire:
    """A cluster with transfers in it."""

    bookies: Sequence[BookieProcess]
    brokers: Sequence[BrokerProcess]
    program: Program
    rng: random.Random
    still: dict[str, list[float]] = field(default_factory=dict)
    """Longest times without a commit, by fault: from its beginning until it was mended and commits went on."""

    def deal(self) -> None:
        """Topics and some coordinators are dealt anew until accounts live on different brokers: who was away has none."""

        def is_dealt() -> bool:
            try:
                put(self.brokers[0], f"{NAMESPACE}/unload")
                for bundle in self.rng.sample(self._system_bundles(), SYSTEM_BUNDLES):
                    put(self.brokers[0], f"{SYSTEM}/{bundle}/unload")
                return len({owner_of(topic, self.brokers[0]) for topic in ACCOUNTS}) > 1
            except OSError:
                return False  # a broker or a bookie that is not quite back holds it up

        until_alone(self.brokers)
        until(is_dealt, DEALT_SECONDS_MAX)

    def _system_bundles(self) -> list[str]:
        """Bundles of the coordinators' topics."""
        edges = get(self.brokers[0], f"{SYSTEM}/bundles")["boundaries"]
        return [f"{low}_{high}" for low, high in itertools.pairwise(edges)]

    def hit(self, name: str, away: int, seconds_max: float) -> None:
        """One fault of FAULTS, amid transactions; over after `away` commits more or that time."""
        began = time.monotonic()
        mend = FAULTS[name](self)
        self.program.until_more(away, seconds_max)
        mend()
        assert self.program.until_more(1), (
            f"nothing is committed for {STILL_SECONDS_MAX} s after {name}: {self.program.reasons}"
        )
        self.still.setdefault(name, []).append(self.program.longest_still(began))
        if "broker" in name:
            self.deal()

    def until_amid(self, count_max: int) -> None:
        """A moment at which transactions are committed again."""
        assert self.program.until_more(self.rng.randint(1, count_max)), f"nothing is committed: {self.program.reasons}"

    def check(self) -> None:
        """The books, and what the brokers know of it. AssertionError."""
        self.program.finish()
        until(lambda: not any(self._stats(topic)["subscriptions"]["movers"]["msgBacklog"] for topic in COMMANDS))
        until(lambda: not any(self._stats(topic)["ongoingTxnCount"] for topic in ACCOUNTS))

    def _stats(self, topic: str) -> Any:
        return get(self.brokers[0], f"/admin/v2/{topic.replace('://', '/')}/stats")


Mend = Callable[[], object]


def _kill_broker(fire: Fire) -> Mend:
    broker = fire.rng.choice(fire.brokers)
    broker.kill()
    return broker.start


def _kill_bookie(fire: Fire) -> Mend:
    bookie = fire.rng.choice(fire.bookies)
    bookie.kill()
    return bookie.start


def _kill_both(fire: Fire) -> Mend:
    starts = (_kill_bookie(fire), _kill_broker(fire))
    return lambda: [start() for start in starts]


def _stop_broker(fire: Fire) -> Mend:
    broker = fire.rng.choice(fire.brokers)
    code = broker.stop()
    assert code == 0, broker.log.read_text()[-4000:]
    return broker.start


FAULTS: dict[str, Callable[[Fire], Mend]] = {
    "kill a broker": _kill_broker,
    "kill a bookie": _kill_bookie,
    "kill a broker and a bookie": _kill_both,
    "stop a broker": _stop_broker,
}


@contextmanager
def transfers_under_fire(
    scratch: Path, *settings: str, brokers: int = 2, threads: int = 8, seconds: int = 10, seed: int = 0
) -> Iterator[Fire]:
    """Begun; `seconds`: the longest that a transaction may take. `settings`: more of the brokers."""
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(scratch / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        storage = [
            running.enter_context(BookieProcess(scratch / f"bookie-{number}", uri, "zkTimeout=2000")).start()
            for number in range(BOOKIES)
        ]
        serving = [
            running.enter_context(BrokerProcess(scratch / f"broker-{number}", zookeeper.servers, *SETTINGS, *settings)).start()
            for number in range(brokers)
        ]
        url = "pulsar://" + ",".join(broker.ready.broker_url.removeprefix("pulsar://") for broker in serving)
        program = running.enter_context(Program(scratch, url, threads, seconds))
        fire = Fire(storage, serving, program, random.Random(seed))
        fire.until_amid(1)
        fire.deal()
        yield fire
