"""The loads, by name: what each is, which program puts it, and on which kind of server.

A load of `timed` lasts as long as the run says; another one is over when its count is done. Never in here: how it is run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from benchmarks.real_loads.tools import Tool

WARM_SHARE = 10
"""Divisor of the counts of a load that warms a server up, or of a short one."""


class Servers(Enum):
    """The kind of servers that a load runs on; loads of a kind run on the same two."""

    PLAIN = "as they come"
    TRANSACTIONAL = "with a transaction coordinator"
    RESTARTED = "killed and started again in the midst of the load"


@dataclass(frozen=True, slots=True)
class Load:
    """One load: `words` are those of the tool, `counts` those of its flags that a short run divides."""

    name: str
    what: str
    tool: Tool
    words: tuple[str, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    timed: bool = True
    over_tls: bool = False
    servers: Servers = Servers.PLAIN
    beside: tuple[str, ...] = ()
    """The load tool's words for a load on another topic meanwhile."""

    @property
    def restarts(self) -> bool:
        return self.servers is Servers.RESTARTED

    def arguments(self, seconds: float, warm_seconds: float, is_short: bool) -> list[str]:
        counts = {flag: max(1, count // WARM_SHARE) if is_short else count for flag, count in self.counts.items()}
        timed = ["-duration", f"{seconds}s", "-warmup", f"{warm_seconds}s"] if self.timed else []
        return [*self.words, *timed, *(word for flag, count in counts.items() for word in (f"-{flag}", str(count)))]


def _many(name: str, what: str, topics: int, rate: int = 0) -> Load:
    words = ("many", "-size", "100", "-type", "shared", "-topics", str(topics), *(("-rate", str(rate)) if rate else ()))
    return Load(name, what, Tool.LOAD, words)


def _of_library(name: str, what: str, *words: str) -> Load:
    return Load(name, what, Tool.CLIENT, words)


LOADS: Mapping[str, Load] = {
    load.name: load
    for load in (
        _many("many-1000", "1,000 topics flat out, 100 B, one message at a time", 1000),
        _many("many-1000-paced", "1,000 topics, 5,000/s in all, 100 B", 1000, 5000),
        _many("many-100", "100 topics flat out, 100 B, one message at a time", 100),
        _many("many-100-paced", "100 topics, 2,000/s in all, 100 B", 100, 2000),
        Load("one-at-a-time", "one producer, 1 KB, one at a time", Tool.LOAD, ("produce", "-sync")),
        Load("end-to-end", "end to end 1 KB, 10,000/s in batches", Tool.LOAD, ("e2e", "-batch", "-rate", "10000")),
        Load(
            "keyed",
            "500 producers, keyed, unbatched 128 B, 20 Key_Shared consumers",
            Tool.LOAD,
            ("iot", "-producers", "500", "-subs", "20", "-size", "128", "-max-pending", "50"),
        ),
        Load("cpp", "Apache's C++ client, 1 KB in batches, published and consumed", Tool.PYTHON, ()),
        Load("tls-batched", "TLS: 1 KB in batches", Tool.CLIENT, ("produce", "-batch"), over_tls=True),
        Load("tls", "TLS: 1 KB unbatched", Tool.CLIENT, ("produce",), over_tls=True),
        Load("handshakes", "TLS: 2,000 handshakes at once", Tool.CLIENT, ("handshakes",), {"n": 2000}, False, over_tls=True),
        Load(
            "workers",
            "1,000 consumers on one Shared subscription, 100 B",
            Tool.CLIENT,
            ("workers", "-size", "100"),
            {"n": 1000},
        ),
        Load(
            "subscriptions",
            "10,000 subscriptions on a topic, every message to all",
            Tool.CLIENT,
            ("subscriptions", "-messages", "20"),
            {"n": 10_000},
            False,
        ),
        _of_library("mixed", "10 B to 5 MB on one connection (latency of the small ones)", "mixed"),
        _of_library("slow", "a slow consumer beside ten fast ones, 5,000/s of 1 KB", "slow", "-rate", "5000"),
        Load(
            "catch-up",
            "a backlog of 300,000 read beside 10,000/s published and consumed",
            Tool.CLIENT,
            ("catchup", "-rate", "10000"),
            {"messages": 300_000},
        ),
        _of_library(
            "consumed-meanwhile", "one producer flat out, 100 B unbatched, ten consumers", "workers", "-n", "10", "-size", "100"
        ),
        Load(
            "quiet",
            "a quiet topic, 100/s, beside one that is published to flat out",
            Tool.CLIENT,
            ("quiet", "-rate", "100"),
            beside=("rawproduce",),
        ),
        Load(
            "quiet-paced",
            "a quiet topic, 100/s, beside one with 20,000/s of 1 KB",
            Tool.CLIENT,
            ("quiet", "-rate", "100"),
            beside=("rawproduce", "-rate", "20000"),
        ),
        Load(
            "transactions",
            "transactions of one message: published",
            Tool.CLIENT,
            ("transactions",),
            servers=Servers.TRANSACTIONAL,
        ),
        Load(
            "returning",
            "10,000 connections that come back after a kill",
            Tool.CLIENT,
            ("returning", "-topics", "1000"),
            {"n": 10_000},
            False,
            servers=Servers.RESTARTED,
        ),
    )
}
