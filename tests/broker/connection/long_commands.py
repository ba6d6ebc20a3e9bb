"""Long commands of clients, made from the protocol's descriptors: each field that can be long, with n of what it holds.

So a new command or a new field has its rows in every test of cost that goes by these.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from tests.broker.connection.peer import TOPIC, message
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand

N = 120
"""Elements of a field; of a text forty times as many characters."""
COMMANDS = 25
TEXTS = {"topic": TOPIC, "namespace": "public/default", "subscription": "s", "topics_pattern": ".*", "partitions": TOPIC}

Fill = Callable[[Message, int], None]


def body_of(command: BaseCommand) -> Any:
    name = next(field.name for field in BaseCommand.DESCRIPTOR.fields if field.number == command.type)
    return getattr(command, name)


def _minimal(body: Any, number: int = 0) -> None:
    """The required fields, and the fields of TEXTS; `number` tells one message from another."""
    for field in body.DESCRIPTOR.fields:
        if field.name in TEXTS and field.type == field.TYPE_STRING and not field.is_repeated:
            setattr(body, field.name, TEXTS[field.name])
        elif not field.is_required:
            continue
        elif field.type == field.TYPE_MESSAGE:
            _minimal(getattr(body, field.name), number)
        elif field.type == field.TYPE_STRING:
            setattr(body, field.name, f"{field.name}{number}")
        elif field.type == field.TYPE_BYTES:
            setattr(body, field.name, b"x")
        elif field.type == field.TYPE_ENUM:
            setattr(body, field.name, field.enum_type.values[0].number)
        elif field.type != field.TYPE_BOOL:
            setattr(body, field.name, 1 if field.name in ("producer_id", "consumer_id", "message_permits") else number)
        else:
            setattr(body, field.name, False)


def fills(descriptor: Descriptor, path: str = "", above: tuple[Descriptor, ...] = ()) -> Iterator[tuple[str, Fill]]:
    """Each field that can be long, and how it gets n of what it holds."""
    for field in descriptor.fields:
        if field.type == field.TYPE_MESSAGE and field.message_type not in above:
            if field.is_repeated:
                yield path + field.name, repeated_message(field.name)
            inner: Any = field.message_type
            for name, fill in fills(inner, f"{path}{field.name}.", (*above, descriptor)):
                yield name, _inside(field, fill)
        elif field.is_repeated and field.type != field.TYPE_MESSAGE:
            yield path + field.name, _repeated_value(field)
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            yield path + field.name, _long(field)


def _inside(field: FieldDescriptor, fill: Fill) -> Fill:
    def filled(body: Any, n: int) -> None:
        inner = getattr(body, field.name)
        inner = inner.add() if field.is_repeated else inner
        inner.SetInParent()
        _minimal(inner)
        fill(inner, n)

    return filled


def repeated_message(name: str) -> Fill:
    def filled(body: Any, n: int) -> None:
        for number in range(n):
            _minimal(getattr(body, name).add(), number)

    return filled


def _repeated_value(field: FieldDescriptor) -> Fill:
    def filled(body: Any, n: int) -> None:
        values: list[Any] = [f"{TEXTS.get(field.name, '')}{number}" for number in range(n)]
        getattr(body, field.name).extend(values if field.type == field.TYPE_STRING else range(1, n + 1))

    return filled


def _long(field: FieldDescriptor) -> Fill:
    def filled(body: Any, n: int) -> None:
        text = TEXTS.get(field.name, "") + "x" * (40 * n)
        setattr(body, field.name, text if field.type == field.TYPE_STRING else text.encode())

    return filled


def one_command(kind: int, fill: Fill, n: int) -> bytes:
    command = BaseCommand(type=BaseCommand.Type.Name(kind))
    body = body_of(command)
    body.SetInParent()
    _minimal(body)
    fill(body, n)
    return _framed(command)


def many_commands(kind: int, n: int, *, other_ids: bool) -> bytes:
    frames = []
    for number in range(n):
        command = BaseCommand(type=BaseCommand.Type.Name(kind))
        body = body_of(command)
        body.SetInParent()
        _minimal(body, number)
        for name in ("producer_id", "consumer_id", "watcher_id"):
            if other_ids and name in body.DESCRIPTOR.fields_by_name:
                setattr(body, name, 10 + number)
        frames.append(_framed(command))
    return b"".join(frames)


def _framed(command: BaseCommand) -> bytes:
    return encode(command, message() if command.type == BaseCommand.SEND else b"")


def rows(kinds: Iterable[int]) -> Iterator[Any]:
    """Parameters of a test: the command's type, what makes it, and n."""
    for kind in kinds:
        name = BaseCommand.Type.Name(kind)
        body = body_of(BaseCommand(type=name))
        for field, fill in fills(body.DESCRIPTOR):
            yield pytest.param(kind, partial(one_command, kind, fill), N, id=f"{name}-{field}")
        for other_ids in (False, True):
            yield pytest.param(
                kind,
                partial(many_commands, kind, other_ids=other_ids),
                COMMANDS,
                id=f"{name}-many{'-ids' if other_ids else ''}",
            )
