"""After a seed: every topic is unloaded, read again from what is stored, and deleted. Each failure is a finding."""

import asyncio

from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from .admin import Admin, path_of
from .knowledge import Knowledge
from .plain_client import PlainClient, Refused

PERMITS = 1 << 30
QUIET_SECONDS, UNCLEAR_SECONDS = 30.0, 0.2
"""Silence after which no more entries are expected; the second where a transaction may keep them back for good."""
_LOG_OF_ACKS = "__transaction_pending_ack"
_THERE = (200, 422)
"""The second one of an entry that is stored as it was sent, and is no message."""


class Aftermath:
    """Aftermath on one server."""

    def __init__(self, host: str, port: int, admin: Admin) -> None:
        self._where, self._admin = (host, port), admin

    async def look(self, known: Knowledge) -> list[str]:
        findings: list[str] = []
        await self._end_transactions(known)
        mine = [each for each in await self._admin.topics() if f"/t-{known.seed}-" in each]
        stored = [each for each in mine if not each.endswith(_LOG_OF_ACKS)]
        for topic in stored:
            findings += await self._expect((204,), "PUT", f"{path_of(topic)}/unload")
        for topic, places in known.published.items():
            if topic not in known.topics:
                continue  # a name that other seeds have, too
            if topic in stored or f"{topic}-partition-0" in stored:
                findings += await self._read(topic, places, is_unclear=topic in known.unclear)
            elif places:
                findings.append(f"{topic}: {len(places)} messages were published, and it is not there")
        return findings + await self._delete(known)

    async def _end_transactions(self, known: Knowledge) -> None:
        """Aborts the transactions: open ones keep later messages from being read."""
        client = await PlainClient.connected(*self._where)
        for most, least in set(known.transactions):
            await client.request(BaseCommand.END_TXN, txnid_most_bits=most, txnid_least_bits=least, txn_action=api.ABORT)
        await client.close()

    async def _expect(self, expected: tuple[int, ...], method: str, path: str) -> list[str]:
        status, told = await self._admin.call(method, path)
        return [] if status in expected else [f"{method} {path}: {status} {told.decode()[:300]}"]

    async def _read(self, topic: str, places: dict[tuple[int, int], bool], *, is_unclear: bool) -> list[str]:
        """Reads with a reader; entries that it is not given have to be stored all the same."""
        try:
            expected = {where for where, is_filtered in places.items() if not is_filtered}
            came = await self._read_all(topic, expected, UNCLEAR_SECONDS if is_unclear else QUIET_SECONDS)
        except (Refused, TimeoutError) as failure:
            return [f"{topic} cannot be read: {type(failure).__name__} {failure}"]
        findings = []
        for (ledger_id, entry_id), is_filtered in places.items():
            if (ledger_id, entry_id) in came:
                continue
            path = f"{path_of(topic)}/ledger/{ledger_id}/entry/{entry_id}"
            findings += await self._expect(_THERE, "GET", path)
            if not is_filtered and not is_unclear:
                findings.append(f"{topic}: {ledger_id}:{entry_id} was published and does not come")
        return findings

    async def _read_all(self, topic: str, expected: set[tuple[int, int]], seconds: float) -> set[tuple[int, int]]:
        """Reads until all expected messages have come, or none comes any more; returns the places of those that came."""
        client = await PlainClient.connected(*self._where)
        came: set[tuple[int, int]] = set()
        try:
            await client.request(
                BaseCommand.SUBSCRIBE,
                topic=topic,
                subscription="aftermath",
                sub_type=api.CommandSubscribe.Exclusive,
                consumer_id=0,
                durable=False,
                initial_position=api.CommandSubscribe.Earliest,
            )
            client.flow(PERMITS)
            while not expected <= came:
                async with asyncio.timeout(seconds):
                    command, _ = await client.deliveries.get()
                came.add((command.message.message_id.ledger_id, command.message.message_id.entry_id))
        except TimeoutError:
            return came
        finally:
            await client.close()
        return came

    async def _delete(self, known: Knowledge) -> list[str]:
        findings: list[str] = []
        for topic in await self._admin.partitioned():
            if f"/t-{known.seed}-" in topic:
                findings += await self._expect((204,), "DELETE", f"{path_of(topic)}/partitions?force=true")
        for topic in await self._admin.topics():
            if f"/t-{known.seed}-" in topic and not topic.endswith(_LOG_OF_ACKS):  # which goes with its topic
                findings += await self._expect((204,), "DELETE", f"{path_of(topic)}?force=true")
        left = [each for each in await self._admin.topics() if f"/t-{known.seed}-" in each]
        return findings + [f"{each} is there after it was deleted" for each in left]
