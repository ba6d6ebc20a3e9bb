"""Every request of both versions, damaged in every way: an error of the protocol or the end of that connection, at most one
line in the log, nothing stored, and nothing lost for the connection beside it that goes on adding all the time."""

import asyncio
import logging
import random
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from bookie.server.session import TICK_SECONDS
from bookie.server.settings import BookieServerSettings
from tests.bookie.runs import KEY
from tests.bookie.server.client import EOK, Client, Served, served
from tests.wire.bookie.bookie_samples import add, batch_read, entry, frame, read
from wire.bookie.codes import BookieError
from wire.generated import bookie_protocol_pb2 as api

OTHERS, OURS, UNKNOWN = 7, 8, 9
"""Ledgers: of the neighbour's connection, of the damaged requests, and one that does not exist."""
OTHERS_KEY = b"the other writer's k"
FRAME_BYTES_MAX = 64 * 1024
SETTINGS = BookieServerSettings(netty_max_frame_size_bytes=FRAME_BYTES_MAX, max_batch_read_size=FRAME_BYTES_MAX)
CLOSED = "closed"
FRAMES = 2_000
FRAMES_PER_CONNECTION = 50


class Neighbour:
    """Adds to its own ledger, a few at a time, for as long as it is there."""

    def __init__(self, client: Client, pause: float) -> None:
        self._client, self._pause = client, pause
        self.acknowledged = 0
        self._is_stopped = False

    async def run(self) -> None:
        while not self._is_stopped:
            first = self.acknowledged
            self._client.send(b"".join(add(OTHERS, first + step, b"%d" % step * 100, key=OTHERS_KEY) for step in range(5)))
            for step in range(5):
                assert await self._client.answer() == (1, EOK, OTHERS, first + step, b"")
                self.acknowledged += 1
            await asyncio.sleep(self._pause)

    def stop(self) -> None:
        self._is_stopped = True

    async def check(self) -> None:
        """Everything is there, as it was added."""
        assert self.acknowledged > 0
        for entry_id in range(self.acknowledged):
            answer = await self._client.ask(read(OTHERS, entry_id))
            assert answer == (2, EOK, OTHERS, entry_id, entry(OTHERS, entry_id, b"%d" % (entry_id % 5) * 100, entry_id - 1))


@asynccontextmanager
async def beside_a_neighbour(at: Served, pause: float = 0.1) -> AsyncIterator[Neighbour]:
    """`pause`: seconds between its batches."""
    async with at.client() as client:
        neighbour = Neighbour(client, pause)
        adding = asyncio.create_task(neighbour.run())
        try:
            yield neighbour
            before = neighbour.acknowledged
            await asyncio.sleep(1 + pause)
            assert neighbour.acknowledged > before, "it went on"
            neighbour.stop()
            await adding
            await neighbour.check()
        finally:
            adding.cancel()


async def outcome(client: Client, version: int) -> int | str:
    """The code of the first answer (version 3: of the response), or CLOSED."""
    try:
        async with asyncio.timeout(3 * TICK_SECONDS):
            body = await client.frame()
    except (asyncio.IncompleteReadError, ConnectionError):
        return CLOSED
    if version == 3:
        return int(api.Response.FromString(body).status)
    return struct.unpack_from(">Ii", body)[1] if len(body) >= 8 else -1


class Damage(NamedTuple):
    """`said`: what comes of it, one of these."""

    name: str
    data: bytes
    said: frozenset[int | str]
    has_line: bool = True
    """Whether the log has a warning: a peer that speaks well and is refused has none."""


# Version 2


def header(opcode: int, flags: int = 0, version: int = 2) -> bytes:
    return struct.pack(">I", version << 24 | opcode << 16 | flags)


OPERATIONS_2: dict[str, bytes] = {
    "add": add(OURS, 0, key=KEY),
    "recovery add": add(OURS, 0, key=KEY, flags=2),
    "read": read(OURS, 0),
    "fencing read": read(OURS, 0, flags=1, key=KEY),
    "batch read": batch_read(OURS, 0, 10, 1000),
    "fencing batch read": frame(batch_read(OURS, 0, 10, 1000, flags=1)[4:] + KEY),
    "auth": frame(header(3) + api.AuthMessage(authPluginName="some.Plugin", payload=b"payload").SerializeToString()),
}
LEDGER_AT = {"add": 28, "recovery add": 28, "read": 8, "fencing read": 8, "batch read": 8, "fencing batch read": 8}
"""Offset of the ledger id in each frame; the entry id comes after it."""
EBADREQ, EUA, EBADVERSION, ENOLEDGER = 100, 102, 103, 1
REFUSED: frozenset[int | str] = frozenset({CLOSED, EBADREQ, EBADVERSION})


def damages_2(name: str) -> Iterator[Damage]:
    whole = OPERATIONS_2[name]
    body = whole[4:]
    for size in sorted({4, 5, len(body) // 2, min(len(body) - 1, 35)}):
        if name != "auth" or size != 4:  # an empty message of authentication lacks its name: it is no message
            yield Damage(f"{size} bytes of it", frame(body[:size]), REFUSED)
    for size in (0, 1, 3, FRAME_BYTES_MAX - 3, 1 << 31, (1 << 32) - 1):
        yield Damage(f"a declared length of {size}", size.to_bytes(4) + body, frozenset({CLOSED}))
    for version in (3, 127, 255):
        yield Damage(f"version {version}", frame(bytes([version]) + body[1:]), REFUSED)
    for opcode in (0, 4, 5, 6, 8, 255):
        yield Damage(f"opcode {opcode}", frame(body[:1] + bytes([opcode]) + body[2:]), frozenset({CLOSED}))
    at = LEDGER_AT.get(name)
    if at is not None:
        negative = struct.pack(">q", -5)
        yield Damage("a negative ledger", whole[:at] + negative + whole[at + 8 :], REFUSED)
        yield Damage("a negative entry", whole[: at + 8] + negative + whole[at + 16 :], REFUSED)
        if "add" not in name and "fencing" not in name:
            unknown = struct.pack(">q", UNKNOWN)
            yield Damage("no such ledger", whole[:at] + unknown + whole[at + 8 :], frozenset({ENOLEDGER}), has_line=False)
    if KEY in whole:
        yield Damage("another key", _at_the_others(whole.replace(KEY, bytes(20)), at), frozenset({EUA}), has_line=False)


def _at_the_others(whole: bytes, at: int | None) -> bytes:
    """The same request, at the neighbour's ledger, which must not be fenced nor written by it."""
    assert at is not None
    return whole[:at] + struct.pack(">q", OTHERS) + whole[at + 8 :]


# Version 3


def request(operation: api.OperationType, version: api.ProtocolVersion = api.VERSION_THREE, **bodies: Any) -> bytes:
    packet = api.BKPacketHeader(version=version, operation=operation, txnId=5)
    return frame(api.Request(header=packet, **bodies).SerializePartialToString())


def lac_body(ledger_id: int) -> bytes:
    return struct.pack(">qq", ledger_id, 0)


def bodies_3(ledger_id: int = OURS, entry_id: int = 0, key: bytes = KEY) -> dict[str, tuple[api.OperationType, dict[str, Any]]]:
    fence = api.ReadRequest.FENCE_LEDGER
    stored = entry(ledger_id, entry_id) if ledger_id >= 0 <= entry_id else struct.pack(">qqqq", ledger_id, entry_id, -1, 0)
    return {
        "add": (
            api.ADD_ENTRY,
            {"addRequest": api.AddRequest(ledgerId=ledger_id, entryId=entry_id, masterKey=key, body=stored)},
        ),
        "read": (api.READ_ENTRY, {"readRequest": api.ReadRequest(ledgerId=ledger_id, entryId=entry_id)}),
        "fencing read": (
            api.READ_ENTRY,
            {"readRequest": api.ReadRequest(ledgerId=ledger_id, entryId=entry_id, masterKey=key, flag=fence)},
        ),
        "write lac": (
            api.WRITE_LAC,
            {"writeLacRequest": api.WriteLacRequest(ledgerId=ledger_id, lac=0, masterKey=key, body=lac_body(ledger_id))},
        ),
        "read lac": (api.READ_LAC, {"readLacRequest": api.ReadLacRequest(ledgerId=ledger_id)}),
        "force": (api.FORCE_LEDGER, {"forceLedgerRequest": api.ForceLedgerRequest(ledgerId=ledger_id)}),
        "list entries": (
            api.GET_LIST_OF_ENTRIES_OF_LEDGER,
            {"getListOfEntriesOfLedgerRequest": api.GetListOfEntriesOfLedgerRequest(ledgerId=ledger_id)},
        ),
        "describe disk": (api.GET_BOOKIE_INFO, {"getBookieInfoRequest": api.GetBookieInfoRequest(requested=3)}),
        "auth": (api.AUTH, {"authRequest": api.AuthMessage(authPluginName="some.Plugin", payload=b"")}),
        "start tls": (api.START_TLS, {"startTLSRequest": api.StartTLSRequest()}),
    }


OPERATIONS_3 = tuple(bodies_3())
REFUSED_3: frozenset[int | str] = frozenset({CLOSED, int(api.EBADREQ), int(api.ENOLEDGER)})
WITHOUT_A_LEDGER = {"describe disk", "auth", "start tls"}
WITHOUT_A_KEY = {"read", "read lac", "force", "list entries"} | WITHOUT_A_LEDGER


def damages_3(name: str) -> Iterator[Damage]:
    operation, bodies = bodies_3()[name]
    whole = request(operation, **bodies)
    body = whole[4:]
    yield Damage("without its message", request(operation), frozenset({int(api.EBADREQ)}))
    wrong = next(iter(bodies_3()["read" if operation != api.READ_ENTRY else "force"][1].items()))
    yield Damage("with another's message", request(operation, **dict([wrong])), frozenset({int(api.EBADREQ)}))
    for version in (api.VERSION_ONE, api.VERSION_TWO):
        yield Damage(f"version {version}", request(operation, version, **bodies), frozenset({int(api.EBADVERSION)}))
    yield Damage("without a header", frame(api.Request(**bodies).SerializePartialToString()), frozenset({CLOSED}))
    for size in sorted({5, len(body) // 2, len(body) - 1}):
        yield Damage(f"{size} bytes of it", frame(body[:size]), REFUSED_3)
    for size in (0, 1, 3, FRAME_BYTES_MAX - 3, 1 << 31, (1 << 32) - 1):
        yield Damage(f"a declared length of {size}", size.to_bytes(4) + body, frozenset({CLOSED}))
    if name not in WITHOUT_A_LEDGER:
        for what, ledger_id, entry_id in (("ledger", -5, 0), ("entry", OURS, -5)):
            if what == "ledger" or name in ("add", "read", "fencing read"):
                damaged = request(operation, **bodies_3(ledger_id, entry_id)[name][1])
                yield Damage(
                    f"a negative {what}",
                    damaged,
                    REFUSED_3 - {CLOSED},
                    has_line=name in ("add", "read", "fencing read", "write lac", "force"),
                )
    if name not in WITHOUT_A_KEY:
        damaged = request(operation, **bodies_3(OTHERS, 0, bytes(20))[name][1])
        yield Damage("another key", damaged, frozenset({int(api.EUA)}), has_line=False)
        damaged = request(operation, **bodies_3(OTHERS, 0, b"k" * 5000)[name][1])
        yield Damage("a key of 5,000 bytes", damaged, frozenset({int(api.EUA), int(api.EBADREQ)}), has_line=name != "write lac")
    if name == "add":
        other = api.AddRequest(ledgerId=OURS, entryId=1, masterKey=KEY, body=entry(OURS, 0))
        yield Damage("another entry than it says", request(operation, addRequest=other), frozenset({int(api.EBADREQ)}))
        short = api.AddRequest(ledgerId=OURS, entryId=0, masterKey=KEY, body=b"short")
        yield Damage("an entry without its header", request(operation, addRequest=short), frozenset({int(api.EBADREQ)}))


CASES = [(2, name) for name in OPERATIONS_2] + [(3, name) for name in OPERATIONS_3]


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_damaged_request_hurts_nobody_but_its_sender(version: int, name: str, caplog: pytest.LogCaptureFixture) -> None:
    damages = list(damages_2(name) if version == 2 else damages_3(name))

    async def scenario(at: Served) -> None:
        async with beside_a_neighbour(at):
            for damage in damages:
                caplog.clear()
                async with at.client() as client:
                    client.send(damage.data)
                    found = await outcome(client, version)
                    assert found in damage.said, f"{damage.name}: {found}"
                    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
                    assert len(lines) == damage.has_line, f"{damage.name}: {lines}"
            with pytest.raises(BookieError):
                await at.bookie.read(OURS, 0, 1, 1)
        await until_alone(at)

    served(scenario, SETTINGS)


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_request_that_is_sent_by_half_is_given_up(version: int, name: str, caplog: pytest.LogCaptureFixture) -> None:
    operation = bodies_3().get(name)
    whole = OPERATIONS_2[name] if version == 2 else request(operation[0], **operation[1]) if operation else b""

    async def scenario(at: Served) -> None:
        async with beside_a_neighbour(at, pause=5.0):
            for size in (1, 3, 4, 5, len(whole) - 1):
                caplog.clear()
                async with at.client() as client:
                    client.send(whole[:size])
                    assert await outcome(client, version) == CLOSED, "after a while"
                lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
                assert len(lines) == 1
                assert "the rest of a frame" in lines[0]
                caplog.clear()
                async with at.client() as client:
                    client.send(whole[:size])  # and its sender goes away
                await asyncio.sleep(1)
                assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
            with pytest.raises(BookieError):
                await at.bookie.read(OURS, 0, 1, 1)
        await until_alone(at)

    served(scenario, SETTINGS)


async def until_alone(at: Served) -> None:
    await asyncio.sleep(2 * TICK_SECONDS)
    assert at.listener.connection_count == 0
    assert at.listener.stats.operations["ADD_ENTRY"].succeeded.count > 0


def mutated(rng: random.Random, data: bytes) -> bytes:
    """One frame, damaged once or a few times."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(damaged) + 1)
        match rng.randrange(5):
            case 0:
                damaged[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 1:
                del damaged[at : at + rng.randrange(1, 9)]
            case 2:
                damaged[at : at + 8] = struct.pack(">q", rng.choice((-1, 0, OTHERS, OURS, 1 << 62, -(1 << 63))))
            case 3:
                damaged[:4] = rng.randrange(1 << rng.choice((4, 8, 17, 32))).to_bytes(4)
            case _ if at < len(damaged):
                damaged[at] ^= 1 << rng.randrange(8)
        if not damaged:
            break
    return bytes(damaged)


def samples() -> list[bytes]:
    return [*OPERATIONS_2.values(), *(request(operation, **bodies) for operation, bodies in bodies_3().values())]


@pytest.mark.parametrize("seed", range(4))
def test_two_thousand_random_frames_hurt_nobody(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(seed)
    connections = FRAMES // FRAMES_PER_CONNECTION // 4

    async def scenario(at: Served) -> None:
        async with beside_a_neighbour(at):
            for _ in range(connections):
                async with at.client() as client:
                    frames = [rng.choice(samples()) for _ in range(FRAMES_PER_CONNECTION)]
                    data = b"".join(each if rng.random() < 0.7 else mutated(rng, each) for each in frames)
                    while data:
                        size = rng.choice((1, 7, 100, 10_000))
                        client.send(data[:size])
                        data = data[size:]
                        await asyncio.sleep(0.001)
                    await asyncio.sleep(0.1)
        await until_alone(at)
        errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert errors == [], "nothing of it is a mistake of ours"

    served(scenario, SETTINGS)
