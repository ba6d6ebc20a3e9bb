"""Credentials that a broker shows the others, over TLS or not: to servers on sockets that record requests."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from broker.admin.rest.answers import Refusal
from broker.admin.rest.elsewhere import ask, ask_json, redirect
from broker.errors import BrokerError
from broker.security.neighbour_settings import NeighbourSettings
from broker.security.tls_settings import TlsSettings
from broker.service.addresses import Advertised, Answer
from broker.service.neighbours.neighbours import Credentials, Neighbours
from broker.service.system_topics.event_log_elsewhere import EventLogElsewhere
from ports.settings import BadSetting
from tests.certificates import Authority, need_openssl
from wire.frames import encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.payloads import payload_section

PLUGINS = "org.apache.pulsar.client.impl.auth.Authentication"
DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


def neighbours(plugin: str = "", parameters: str = "", *, insecure: bool = False, **more: Any) -> Neighbours:
    given = NeighbourSettings(plugin and PLUGINS + plugin, parameters, **more)
    shared = TlsSettings(tls_allow_insecure_connection=insecure)
    return given.neighbours(shared, {"THE_TOKEN": "t.o.k"}, lambda: 0.0)


class Other:
    """A web server that gives these answers, one for each connection. `heard` has the requests."""

    def __init__(self, *answers: bytes) -> None:
        self._answers, self.heard, self.port = list(answers), list[str](), 0

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext | None = None) -> AsyncIterator["Other"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(self._answers.pop(0))
        writer.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(bounded())


def shown(heard: str) -> list[str]:
    return [line for line in heard.split("\r\n") if line.lower().startswith("authorization")]


@pytest.mark.parametrize(
    ("plugin", "parameters", "header"),
    [
        ("", "", []),
        ("Disabled", "", []),
        ("Token", "token:a.b.c", ["authorization: Bearer a.b.c"]),
        ("Token", "env:THE_TOKEN", ["authorization: Bearer t.o.k"]),
        ("Basic", "me:secret", [f"authorization: Basic {base64.b64encode(b'me:secret').decode()}"]),
    ],
)
def test_a_broker_shows_its_own_credentials(plugin: str, parameters: str, header: list[str]) -> None:
    async def scenario() -> None:
        async with Other(DONE, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").running() as other:
            there, own = Advertised("", f"http://127.0.0.1:{other.port}"), neighbours(plugin, parameters)
            await ask(own, there, "PUT", "/a/unload")
            assert await ask_json(own, there, "/b?c=d") == {}
            assert [each.split("\r\n")[0] for each in other.heard] == ["PUT /a/unload HTTP/1.1", "GET /b?c=d HTTP/1.1"]
            assert [shown(each) for each in other.heard] == [header, header]

    run(scenario)


@pytest.mark.parametrize(("method", "asked"), [("POST", 2), ("DELETE", 2), ("PUT", 1)])
def test_a_redirect_is_followed_for_a_post_or_delete_and_not_for_a_put(method: str, asked: int) -> None:
    async def scenario() -> None:
        async with Other(DONE).running() as owner:
            sent_on = f"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:{owner.port}/a\r\nContent-Length: 0\r\n\r\n".encode()
            async with Other(sent_on).running() as before:
                there = Advertised("", f"http://127.0.0.1:{before.port}")
                await ask(neighbours("Token", "token:a.b.c"), there, method, "/a")
            heard = before.heard + owner.heard
            assert [shown(each) for each in heard] == [["authorization: Bearer a.b.c"]] * asked

    run(scenario)


def test_a_token_that_was_renewed_is_shown_and_one_that_is_gone_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    own = neighbours("Token", file.as_uri())
    file.write_text("second\n")
    assert own.credentials() == Credentials("token", b"second")
    for spoilt in ("", "two words"):
        file.write_text(spoilt)
        assert own.credentials() == Credentials("token", b"second")
    file.unlink()
    assert own.credentials() == Credentials("token", b"second")
    assert "second" not in repr(own.credentials())


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_names_the_setting_and_not_the_token(status: int) -> None:
    async def scenario() -> None:
        answer = f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()
        async with Other(answer, answer).running() as other:
            there, own = Advertised("", f"http://127.0.0.1:{other.port}"), neighbours("Token", "token:canary")
            for asking in (ask(own, there, "PUT", "/a"), ask_json(own, there, "/a")):
                with pytest.raises(Refusal, match="brokerClientAuthentication") as refused:
                    await asking
                assert (refused.value.status, "canary" in refused.value.reason) == (500, False)

    run(scenario)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextmanager
def server_context(authority: Authority, name: str) -> Iterator[ssl.SSLContext]:
    identity = authority.sign(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    yield context


@need_openssl
def test_over_tls_a_broker_shows_its_certificate_and_never_goes_on_in_the_clear(authority: Authority) -> None:
    client = authority.sign("broker-client")
    own = neighbours(
        "Tls",
        broker_client_tls_enabled=True,
        broker_client_trust_certs_file_path=str(authority.certificate),
        broker_client_certificate_file_path=str(client.certificate),
        broker_client_key_file_path=str(client.key),
    )

    async def scenario() -> None:
        async with Other().running() as plain:
            sent_on = f"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:{plain.port}/b\r\nContent-Length: 0\r\n\r\n".encode()
            with server_context(authority, "other") as context:
                async with Other(DONE, sent_on).running(context) as other:
                    there = Advertised("", f"http://127.0.0.1:{plain.port}", "", f"https://127.0.0.1:{other.port}")
                    await ask(own, there, "PUT", "/a")
                    with pytest.raises(Refusal, match="no address of https"):
                        await ask_json(own, there, "/b")
            with pytest.raises(BrokerError, match="no web port for TLS"):
                await ask(own, Advertised("", f"http://127.0.0.1:{plain.port}"), "PUT", "/a")
            assert (len(other.heard), plain.heard) == (2, [])

    run(scenario)


@need_openssl
def test_cve_2022_33683_nothing_is_shown_to_a_broker_whose_certificate_nobody_trusted_has_signed(
    authority: Authority, tmp_path: Path
) -> None:
    strangers = Authority(tmp_path / "strangers").sign("stranger")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(strangers.certificate, strangers.key)
    trust: dict[str, Any] = {
        "broker_client_tls_enabled": True,
        "broker_client_trust_certs_file_path": str(authority.certificate),
    }

    async def scenario() -> None:
        async with Other(DONE).running(context) as other:
            there = Advertised("", "", "", f"https://127.0.0.1:{other.port}")
            with pytest.raises(Refusal, match="CERTIFICATE_VERIFY_FAILED"):
                await ask(neighbours("Token", "token:canary", **trust), there, "PUT", "/a")
            assert other.heard == []
            await ask(neighbours("Token", "token:canary", insecure=True, **trust), there, "PUT", "/a")
            assert len(other.heard) == 1

    run(scenario)


def test_cve_2022_33681_and_33682_nothing_is_shown_to_a_broker_whose_certificate_is_for_another_host(
    authority: Authority, tmp_path: Path
) -> None:
    impostor = authority.sign("impostor", hosts="DNS:another.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(impostor.certificate, impostor.key)
    trust: dict[str, Any] = {
        "broker_client_tls_enabled": True,
        "broker_client_trust_certs_file_path": str(authority.certificate),
    }

    async def scenario() -> None:
        async with Other(DONE).running(context) as other:
            there = Advertised("", "", "", f"https://127.0.0.1:{other.port}")
            with pytest.raises(Refusal, match="CERTIFICATE_VERIFY_FAILED"):
                await ask(neighbours("Token", "token:canary", **trust), there, "PUT", "/a")
            assert other.heard == [], "not one byte of the request, least of all the token"
            await ask(neighbours("Token", "token:canary", tls_hostname_verification_enabled=False, **trust), there, "PUT", "/a")
            assert len(other.heard) == 1

    run(scenario)


class Policies(asyncio.Protocol):
    """A broker of the binary protocol that asks for the credentials anew before it answers the subscription."""

    def __init__(self, on_subscribe: Callable[[], object]) -> None:
        self.heard: list[BaseCommand] = []
        self._on_subscribe = on_subscribe
        self._transport: asyncio.BaseTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        at = 0
        while (frame := next_frame(data, at, len(data))) is not None:
            at = frame.end
            self.heard.append(frame.command)
            self._answer(frame.command)

    def _answer(self, command: BaseCommand) -> None:
        match command.type:
            case BaseCommand.CONNECT:
                answer = BaseCommand(type=BaseCommand.CONNECTED, connected=api.CommandConnected(server_version="other"))
            case BaseCommand.LOOKUP:
                answer = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
                answer.lookup_topic_response.request_id = command.lookup_topic.request_id
                answer.lookup_topic_response.response = api.CommandLookupTopicResponse.Connect
            case BaseCommand.SUBSCRIBE:
                self._on_subscribe()
                challenge = api.AuthData(auth_method_name="token", auth_data=b"PulsarRefresh")
                answer = BaseCommand(type=BaseCommand.AUTH_CHALLENGE)
                answer.auth_challenge.challenge.CopyFrom(challenge)
            case BaseCommand.AUTH_RESPONSE:
                answer = BaseCommand(type=BaseCommand.SUCCESS, success=api.CommandSuccess(request_id=1))
            case BaseCommand.GET_LAST_MESSAGE_ID:
                answer = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)
                answer.get_last_message_id_response.request_id = 2
                answer.get_last_message_id_response.last_message_id.ledger_id = 7
                answer.get_last_message_id_response.last_message_id.entry_id = 3
            case _:
                return
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write(encode(answer))


def test_topic_policies_are_asked_for_with_credentials_which_are_shown_again_when_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")

    async def scenario() -> None:
        peer = Policies(lambda: file.write_text("second"))
        server = await asyncio.get_running_loop().create_server(lambda: peer, "127.0.0.1", 0)
        there = Advertised(f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}", "")
        events = EventLogElsewhere("t", Answer(there), neighbours("Token", file.as_uri()), lambda: "name")
        try:
            assert (await events.read(lambda position, section: None, lambda reason: None)).entry_id == 3
        finally:
            events.close()
            server.close()
            await server.wait_closed()
        connect = peer.heard[0].connect
        assert (connect.auth_method_name, connect.auth_data) == ("token", b"first")
        assert connect.feature_flags.supports_auth_refresh
        (response,) = [each.auth_response.response for each in peer.heard if each.type == BaseCommand.AUTH_RESPONSE]
        assert (response.auth_method_name, response.auth_data) == ("token", b"second")

    run(scenario)


class Batches(Policies):
    """Nine batches of 65, once it is allowed to send; then it waits for the same number of permits."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.given_back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._is_told = False

    def _answer(self, command: BaseCommand) -> None:
        super()._answer(command)
        if command.type != BaseCommand.FLOW:
            return
        if self._is_told:
            self.given_back.set_result(command.flow.message_permits)
            return
        self._is_told = True
        metadata = api.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, num_messages_in_batch=65)
        assert isinstance(self._transport, asyncio.Transport)
        for number in range(9):
            told = api.CommandMessage(consumer_id=1, message_id=api.MessageIdData(ledger_id=7, entry_id=number))
            self._transport.write(encode(BaseCommand(type=BaseCommand.MESSAGE, message=told), payload_section(metadata, b"x")))


def test_reading_a_remote_event_log_returns_a_permit_for_each_message_of_a_batch() -> None:
    """Other writers may write batches: with one permit returned for each, the reading ended."""

    async def scenario() -> None:
        peer = Batches()
        server = await asyncio.get_running_loop().create_server(lambda: peer, "127.0.0.1", 0)
        there = Advertised(f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}", "")
        events = EventLogElsewhere("t", Answer(there), neighbours("Token", "token:one"), lambda: "name")
        try:
            await events.read(lambda position, section: None, lambda reason: None)
            async with asyncio.timeout(20):
                assert await peer.given_back == 8 * 65
        finally:
            events.close()
            server.close()
            await server.wait_closed()

    run(scenario)


@pytest.mark.parametrize("is_redirect", [False, True])
def test_only_who_is_to_have_the_topic_policies_is_asked_to_take_them(tmp_path: Path, is_redirect: bool) -> None:
    """The former owner may have given them up for another broker, and would take them back."""

    async def scenario() -> None:
        peer = Policies(lambda: None)
        server = await asyncio.get_running_loop().create_server(lambda: peer, "127.0.0.1", 0)
        there = Advertised(f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}", "")
        events = EventLogElsewhere("t", Answer(there, is_redirect), neighbours("Token", "token:one"), lambda: "name")
        try:
            await events.read(lambda position, section: None, lambda reason: None)
        finally:
            events.close()
            server.close()
            await server.wait_closed()
        asked = [each.lookup_topic.authoritative for each in peer.heard if each.type == BaseCommand.LOOKUP]
        assert asked == [True] * is_redirect

    run(scenario)


@pytest.mark.parametrize(
    ("plugin", "given", "remedy"),
    [
        ("OAuth2", {}, "expected one of token"),
        ("Token", {}, "expected one token"),
        ("", {"broker_client_certificate_file_path": "a"}, "brokerClientKeyFilePath is not set"),
        ("", {"broker_client_tls_enabled": True, "broker_client_trust_certs_file_path": "/none"}, "brokerClientTrustCerts"),
    ],
)
def test_half_configured_broker_client_settings_are_refused(plugin: str, given: dict[str, Any], remedy: str) -> None:
    with pytest.raises((BadSetting, ValueError), match=remedy):
        neighbours(plugin, **given)


@pytest.mark.parametrize(
    ("scheme", "http_url", "http_url_tls", "expected"),
    [
        ("http", "http://o:1", "https://o:2", "http://o:1"),
        ("https", "http://o:1", "https://o:2", "https://o:2"),
        ("https", "http://o:1", "", "http://o:1"),
        ("http", "", "https://o:2", "https://o:2"),
    ],
)
def test_a_redirect_keeps_the_scheme_of_the_request_if_the_owner_has_it(
    scheme: str, http_url: str, http_url_tls: str, expected: str
) -> None:
    scope = {"type": "http", "method": "GET", "scheme": scheme, "path": "/a", "query_string": b"b=c", "headers": []}
    answer = redirect(Request({**scope, "server": ("here", 1)}), Advertised("", http_url, "", http_url_tls))
    assert (answer.status_code, answer.headers["location"]) == (307, f"{expected}/a?b=c")
