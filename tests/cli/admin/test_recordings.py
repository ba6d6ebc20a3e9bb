"""Requests and output of Apache's pulsar-admin, command by command, and ours with the same answers.

`apache/recordings.jsonl` was taken from Apache's tool 4.0.8 before its broker 4.0.8. Where a request has a time in it,
or Apache's own tool leaves a request to the next command, there is no recording.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from cli.admin.http import Answer, Refused
from cli.admin.request import Request
from cli.admin.tool import Finished, perform, understood

RECORDINGS = Path(__file__).parents[1] / "apache" / "recordings.jsonl"


class Recorded:
    """The server of a recording: answers each request once."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        self.left = list(exchanges)
        self.unexpected: list[Request] = []

    def ask(self, request: Request) -> Answer:
        for exchange in self.left:
            if asked(request.method, request.path, request.body or b"") == asked(
                exchange["method"], exchange["path"], exchange["body"].encode()
            ):
                self.left.remove(exchange)
                return answered(exchange)
        self.unexpected.append(request)
        raise Refused(500, f"Apache's tool did not ask {request}")


def answered(exchange: dict[str, Any]) -> Answer:
    body = exchange["answer"].encode("latin1")
    if exchange["status"] >= 300:
        raise Refused(exchange["status"], json.loads(body).get("reason") or body.decode())
    return Answer(exchange["status"], {name.lower(): value for name, value in exchange["headers"]}, body)


def asked(method: str, path: str, body: bytes) -> tuple[object, ...]:
    """Relevant parts of a request: not the order of parameters, members, or elements of sets."""
    parts = urlsplit(path)
    value = unordered(json.loads(body)) if body[:1] in (b"{", b"[") else body
    return method, parts.path, sorted(parse_qsl(parts.query, keep_blank_values=True)), value


def unordered(value: Any) -> Any:
    if isinstance(value, list):
        return sorted((unordered(each) for each in value), key=json.dumps)
    if isinstance(value, dict):
        return {key: unordered(each) for key, each in value.items() if (key, each) != ("batchSize", 0)}
    return value


def printed(text: str) -> object:
    """JSON by its value and number of lines; lines as a set (Apache prints what its hash tables hold) of their letters."""
    try:
        return unordered(json.loads(text)), text.count("\n")
    except ValueError:
        return sorted("".join(sorted(line)) for line in text.splitlines())


def recordings() -> Iterator[Any]:
    for line in RECORDINGS.read_text().splitlines():
        yield json.loads(line)


def test_every_recorded_command_asks_and_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for recording in recordings():
        server, lines = Recorded(recording["exchanges"]), list[str]()
        try:
            code = perform(understood(recording["argv"]), server, lines.append)
            stdout = "".join(f"{line}\n" for line in lines)
        except Finished as end:
            code, stdout = end.code, ""
        stderr = capsys.readouterr().err
        same = code == recording["code"] and printed(stdout) == printed(recording["stdout"]) and not server.unexpected
        if not same or (recording["reason"].strip() and recording["reason"].strip() not in stderr):
            wrong.append((recording["argv"], code, stdout[:200], server.unexpected, stderr[:200]))
    assert wrong == []


def test_there_are_recordings_of_nearly_every_command() -> None:
    assert len({tuple(recording["argv"][:2]) for recording in recordings()}) > 440
