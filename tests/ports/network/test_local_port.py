"""Messages and open files over a local socket: questions one after another, files closed here, and bounds on connections."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ports.network import local_port
from ports.network.local_port import FILES_MAX, LocalAnswer, LocalPeer, LocalPort, close_all, open_to_share

NAME = f"interpulse-test-{os.getpid()}"


async def shout(question: bytes, peer: LocalPeer) -> LocalAnswer | None:
    return None if question == b"end" else LocalAnswer(question.upper())


def served(scenario: Callable[[LocalPort], Coroutine[Any, Any, None]], answer: local_port.Answer = shout) -> None:
    async def bounded() -> None:
        port = LocalPort(NAME, 1000, answer)
        port.listen()
        try:
            async with asyncio.timeout(20):
                await scenario(port)
        finally:
            await port.close()
            await port.close()

    asyncio.run(bounded())


async def connected() -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    await asyncio.get_running_loop().sock_connect(found, "\0" + NAME)
    return found


async def asked(peer: socket.socket, question: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(peer, question)
    return await loop.sock_recv(peer, 1000)


def test_each_question_of_a_connection_gets_its_answer() -> None:
    async def scenario(port: LocalPort) -> None:
        with await connected() as peer:
            assert [await asked(peer, each) for each in (b"one", b"two")] == [b"ONE", b"TWO"]

    served(scenario)


def test_an_answer_of_none_ends_that_connection_alone() -> None:
    async def scenario(port: LocalPort) -> None:
        with await connected() as ended, await connected() as other:
            assert await asked(ended, b"end") == b""
            assert await asked(other, b"on") == b"ON"

    served(scenario)


def test_a_file_is_handed_over_and_closed_here(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    given: list[int] = []

    async def give(question: bytes, peer: LocalPeer) -> LocalAnswer:
        given.append(open_to_share(str(tmp_path / "f")))
        return LocalAnswer(b"here", given)

    async def scenario(port: LocalPort) -> None:
        with await connected() as peer:
            await asyncio.get_running_loop().sock_sendall(peer, b"give")
            message, files, _, _ = await asyncio.to_thread(receive, peer)
            assert (message, os.pread(files[0], 100, 0)) == (b"here", b"content")
            close_all(files)
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(given[0])

    served(scenario, give)


def receive(peer: socket.socket) -> tuple[bytes, list[int], int, Any]:
    peer.setblocking(True)
    return socket.recv_fds(peer, 1000, 4)


def test_connections_beyond_the_bound_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_port, "CONNECTIONS_MAX", 1)

    async def scenario(port: LocalPort) -> None:
        with await connected() as first:
            assert await asked(first, b"one") == b"ONE"
            with await connected() as second:
                assert await asyncio.get_running_loop().sock_recv(second, 10) == b""
            assert await asked(first, b"two") == b"TWO"

    served(scenario)


def test_the_close_ends_connections_and_frees_the_name() -> None:
    async def scenario(port: LocalPort) -> None:
        with await connected() as peer:
            assert await asked(peer, b"one") == b"ONE"
            await port.close()
            assert await asyncio.get_running_loop().sock_recv(peer, 10) == b""
        again = LocalPort(NAME, 1000, shout)
        again.listen()
        await again.close()

    served(scenario)


def test_a_name_that_is_taken_is_an_error_that_leaves_no_socket() -> None:
    async def scenario(port: LocalPort) -> None:
        second = LocalPort(NAME, 1000, shout)
        with pytest.raises(OSError, match="Address already in use"):
            second.listen()

    served(scenario)


def test_a_peer_has_room_for_so_many_files() -> None:
    peer = LocalPeer({str(number): number for number in range(FILES_MAX - 1)})
    assert peer.has_room
    peer.files["last"] = 1
    assert not peer.has_room
