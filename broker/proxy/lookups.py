"""Lookups: what clients ask before they connect to a broker, asked of the brokers for them. Redirects are followed here.

The answer to LOOKUP names the owner and says `proxy_through_service_url`: the client comes back with the owner's address in its
CONNECT (Apache's LookupProxyHandler). Bounds: REDIRECTS_MAX, ATTEMPTS_MAX, maxConcurrentLookupRequests.
"""

import asyncio
import logging
from typing import cast

from ports.logs import line
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandLookupTopicResponse

from ..errors import BrokerError, ServerError
from .brokers import Brokers, address_of
from .clients import NOBODY, Client
from .counts import REQUESTS, Counts
from .link import BrokerLink, LinkFailed, body_of
from .settings import FRAME_PADDING_BYTES, ProxySettings
from .way import Way

log = logging.getLogger(__name__)

ATTEMPTS_MAX = 3
REDIRECTS_MAX = 20
LINKS_MAX = 1000
"""One for each broker and principal; the oldest is ended for a new one."""
RELAYED = frozenset(REQUESTS)


class Lookups:
    """Lookups of one proxy. `answer` for each request; `close` last."""

    def __init__(self, brokers: Brokers, settings: ProxySettings, way: Way, counts: Counts) -> None:
        self._brokers, self._settings, self._way, self._counts = brokers, settings, way, counts
        self._links: dict[tuple[str, Client], asyncio.Task[BrokerLink]] = {}
        self._under_way = 0

    async def answer(self, command: BaseCommand, client: Client = NOBODY) -> bytes:
        """The frame for the client; it carries a failure too."""
        self._counts.requests[command.type] += 1
        if self._under_way >= self._settings.max_concurrent_lookup_requests:
            self._counts.rejected_requests[command.type] += 1
            limit = f"Too many lookups are under way: {self._settings.max_concurrent_lookup_requests}"
            return encode(failed(command, BrokerError(ServerError.TOO_MANY_REQUESTS, limit)))
        self._under_way += 1
        try:
            return encode(await self._asked(command, client))
        except BrokerError as failure:
            return encode(failed(command, failure))
        finally:
            self._under_way -= 1

    async def close(self) -> None:
        links, self._links = list(self._links.values()), {}
        for task in links:
            task.cancel()
        for done in await asyncio.gather(*links, return_exceptions=True):
            if isinstance(done, BrokerLink):
                done.end("the proxy stops")

    async def _asked(self, command: BaseCommand, client: Client) -> BaseCommand:
        """Another broker is asked where one cannot answer. BrokerError."""
        reason = "no broker is registered"
        for _ in range(ATTEMPTS_MAX):
            address = self._brokers.pick()
            if address is None:
                break
            try:
                if command.type == BaseCommand.LOOKUP:
                    return await self._looked_up(command, address, client)
                return await (await self._link(address, client)).ask(command)
            except LinkFailed as error:
                reason = str(error)
        raise BrokerError(ServerError.SERVICE_NOT_READY, f"No broker answers: {reason}")

    async def _looked_up(self, command: BaseCommand, address: str, client: Client) -> BaseCommand:
        asked = BaseCommand()
        asked.CopyFrom(command)
        for _ in range(REDIRECTS_MAX):
            answer = await (await self._link(address, client)).ask(asked)
            if answer.type != BaseCommand.LOOKUP_RESPONSE:
                return answer
            told = answer.lookup_topic_response
            if told.response == CommandLookupTopicResponse.Connect:
                told.proxy_through_service_url = True
                told.broker_service_url = told.broker_service_url_tls = self._url_in(told)
                return answer
            if told.response != CommandLookupTopicResponse.Redirect:
                return answer
            address = address_of(self._url_in(told)) or ""
            if not await self._brokers.may_reach(address):
                log.warning(line("lookup redirected to an unknown broker", address=address[:200]))
                raise BrokerError(ServerError.SERVICE_NOT_READY, f"Redirected to {address[:200]}, which is no known broker")
            asked.lookup_topic.authoritative = told.authoritative
        raise BrokerError(ServerError.SERVICE_NOT_READY, f"Redirected more than {REDIRECTS_MAX} times")

    def _url_in(self, told: CommandLookupTopicResponse) -> str:
        """Returns the address by which the proxy reaches the broker, independently of the client's choice."""
        return told.broker_service_url_tls if self._way.tls is not None else told.broker_service_url

    async def _link(self, address: str, client: Client) -> BrokerLink:
        """Shared, and opened once also for concurrent callers. LinkFailed."""
        key = (address, client)
        task = self._links.get(key)
        if task is None:
            if len(self._links) >= LINKS_MAX:
                await self._end_oldest()
            task = self._links[key] = asyncio.create_task(self._open(key), name="link to a broker")
            task.add_done_callback(lambda done: self._forget(key, done) if not _is_good(done) else None)
        return await asyncio.shield(task)

    async def _end_oldest(self) -> None:
        oldest = self._links.pop(next(iter(self._links)))
        oldest.cancel()
        for done in await asyncio.gather(oldest, return_exceptions=True):
            if isinstance(done, BrokerLink):
                done.end("others need the room")

    async def _open(self, key: tuple[str, Client]) -> BrokerLink:
        own = asyncio.current_task()
        bytes_max = self._settings.max_message_size + FRAME_PADDING_BYTES
        link = BrokerLink(key[0], bytes_max, lambda _: self._forget(key, own), self._way, key[1])
        await link.open(self._settings.broker_proxy_connect_timeout_ms / 1000)
        return link

    def _forget(self, key: tuple[str, Client], task: "asyncio.Task[BrokerLink] | None") -> None:
        if self._links.get(key) is task:
            del self._links[key]


def _is_good(task: "asyncio.Task[BrokerLink]") -> bool:
    return not task.cancelled() and task.exception() is None


def failed(command: BaseCommand, failure: BrokerError) -> BaseCommand:
    """Refusal in the response that the command has, or in an ERROR where it has none for that."""
    request_id, code = body_of(command).request_id, cast(api.ServerError, int(failure.code))
    if command.type == BaseCommand.LOOKUP:
        told = CommandLookupTopicResponse(
            request_id=request_id, response=CommandLookupTopicResponse.Failed, error=code, message=failure.message
        )
        return BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookup_topic_response=told)
    if command.type == BaseCommand.PARTITIONED_METADATA:
        response = api.CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            response=api.CommandPartitionedTopicMetadataResponse.Failed,
            error=code,
            message=failure.message,
        )
        return BaseCommand(type=BaseCommand.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=response)
    error = api.CommandError(request_id=request_id, error=code, message=failure.message)
    return BaseCommand(type=BaseCommand.ERROR, error=error)
