"""The web ports of a broker: httpRequestsLimitEnabled limits both together, and what is refused is counted."""

import asyncio

from broker.security.tls_settings import TlsSettings
from cli.broker.web_ports import WebPorts, bound_web_ports
from cli.configuration.server_settings import ServerSettings
from tests.broker.admin.admin_world import ADVERTISED, AdminWorld


async def status(web: WebPorts, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", web.number)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return int((await reader.read()).split()[1])
    finally:
        writer.close()
        await writer.wait_closed()


async def asked(settings: ServerSettings) -> tuple[list[int], int]:
    """The statuses of three requests, and how many the broker has counted as refused."""
    world = AdminWorld()
    await world.service.bootstrap_standalone(ADVERTISED)
    await world.service.start(ADVERTISED)
    web = bound_web_ports(settings, TlsSettings())
    try:
        await web.serve(world.service, world.store, None, None, None)
        found = [await status(web, path) for path in ("/status.html", "/metrics", "/status.html")]
    finally:
        web.close()
        await world.service.close()
    return found, world.service.meters.http_requests_rejected


def test_more_requests_than_a_second_may_have_get_429() -> None:
    settings = ServerSettings(
        web_service_port=0,
        bind_address="127.0.0.1",
        http_requests_limit_enabled=True,
        http_requests_max_per_second=0.001,
    )
    assert asyncio.run(asked(settings)) == ([200, 429, 429], 2)


def test_without_the_limit_nobody_is_refused() -> None:
    settings = ServerSettings(web_service_port=0, bind_address="127.0.0.1", http_requests_max_per_second=0.001)
    assert asyncio.run(asked(settings)) == ([200, 200, 200], 0)
