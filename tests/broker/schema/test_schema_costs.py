"""A schema is checked and compared in time linear in its definition, whatever its shape; what is too intricate is refused."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from broker.schema import avro_rules
from broker.schema.compatibility import check_compatible, is_same_schema
from broker.schema.definitions import check_definition
from broker.schema.key_value import join_key_value
from broker.schema.values import SchemaData, SchemaRefused, SchemaType, Strategy
from metadata.memory import SharedTree
from tests.broker.schema.test_registry import Broker
from tests.cost import Counter, assert_linear, steps
from tests.managed_ledger.fake_ledgers import FakeLedgers

N = 40
BOUND = 9.9
"""Above 8 is what Avro's library does with each field's name, which FIELDS_MAX bounds."""


def _record(name: str, *fields: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **members}


def _field(name: str, kind: Any, **members: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **members}


def _many_fields(n: int, prefix: str) -> Any:
    return _record("r", *[_field(f"f{each}", "int", default=each) for each in range(n)])


def _many_aliases(n: int, prefix: str) -> Any:
    return _record("r", *[_field(f"{prefix}{each}", "int", default=0, aliases=[f"a{each}", f"b{each}"]) for each in range(n)])


def _many_symbols(n: int, prefix: str) -> Any:
    return {"type": "enum", "name": "e", "symbols": [f"S{each}" for each in range(n)]}


def _union_of_the_same_records(n: int, prefix: str) -> Any:
    return _record("r", _field("u", [_record(f"x{each}", _field("f", "int")) for each in range(n)]))


def _chain_of_records(n: int, prefix: str) -> Any:
    return _record(
        "r", *[_field(f"f{each}", _record(f"x{each}", _field("g", f"x{each - 1}" if each else "int"))) for each in range(n)]
    )


def _deep_arrays(n: int, prefix: str) -> Any:
    kind: Any = "int"
    for _ in range(n):
        kind = {"type": "array", "items": kind}
    return kind


SHAPES: dict[str, Callable[[int, str], Any]] = {
    "many fields": _many_fields,
    "many aliases": _many_aliases,
    "many symbols": _many_symbols,
    "a union of many records": _union_of_the_same_records,
    "records that name others": _chain_of_records,
}


def _avro(definition: Any, kind: SchemaType = SchemaType.AVRO) -> SchemaData:
    return SchemaData(kind, json.dumps(definition).encode(), {})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON, SchemaType.KEY_VALUE])
def test_a_definition_is_checked_and_compared_in_linear_time(shape: str, kind: SchemaType) -> None:
    def made(n: int, prefix: str) -> SchemaData:
        plain = _avro(SHAPES[shape](n, prefix), kind)
        if kind is not SchemaType.KEY_VALUE:
            return plain
        types = {"key.schema.type": "AVRO", "value.schema.type": "AVRO"}
        return SchemaData(kind, join_key_value(plain.data, plain.data), types)

    def work(n: int) -> Callable[[], Any]:
        old, new = made(n, "old"), made(n, "new")

        def looked_at() -> None:
            check_definition(new)
            is_same_schema(old, new)
            check_compatible([old], new, Strategy.FULL)

        return looked_at

    assert_linear(work, N, bound=BOUND)


def test_a_protobuf_definition_is_checked_and_compared_in_linear_time() -> None:
    def made(n: int) -> SchemaData:
        file = FileDescriptorProto(name="f.proto", package="p")
        for number in range(n):
            message = file.message_type.add(name=f"m{number}")
            message.field.add(name="f", number=1, type=11, label=1, type_name=f".p.m{max(0, number - 1)}")
            message.field.add(name="g", number=2, type=5, label=1)
        data = base64.b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode()
        definition = {"fileDescriptorSet": data, "rootMessageTypeName": f"p.m{n - 1}", "rootFileDescriptorName": "f.proto"}
        return SchemaData(SchemaType.PROTOBUF_NATIVE, json.dumps(definition).encode(), {})

    def work(n: int) -> Callable[[], Any]:
        old, new = made(n), SchemaData(SchemaType.PROTOBUF_NATIVE, made(n).data + b" ", {})

        def looked_at() -> None:
            check_definition(new)
            check_compatible([old], new, Strategy.FULL)

        return looked_at

    assert_linear(work, 20)


def _nested_unions(depth: int, prefix: str) -> Any:
    """Each record is in a union, under another name than the other side's: only a record that fits can be the branch."""
    kind: Any = "int"
    for each in range(depth):
        kind = ["null", _record(f"{prefix}{each}", _field("f", kind))]
    return _record("r", _field("u", kind))


def test_unions_of_records_in_unions_are_compared_once_each() -> None:
    """Each level was compared twice, so that 30 levels took longer than anybody waits."""
    costs = [steps(_compared(_nested_unions, depth)) for depth in (5, 10)]
    assert costs[1] < 3 * costs[0]


def test_a_union_of_records_that_all_have_to_be_tried_is_refused_as_too_intricate() -> None:
    def tried(n: int, prefix: str) -> Any:
        return _record("r", _field("u", [_record(f"{prefix}{each}", _field(f"f{each}", "int")) for each in range(n)]))

    costs = [steps(_compared(tried, n)) for n in (80, 640)]
    assert costs[1] < BOUND * costs[0]
    with pytest.raises(SchemaRefused, match="too intricate"):
        avro_rules.can_read(_avro(tried(300, "a")).data, _avro(tried(300, "b")).data)


def _compared(shape: Callable[[int, str], Any], n: int) -> Callable[[], Any]:
    reader, writer = _avro(shape(n, "a")).data, _avro(shape(n, "b")).data

    def compare() -> str | None:
        try:
            return avro_rules.can_read(reader, writer)
        except SchemaRefused as refused:
            return str(refused)

    return compare


@pytest.mark.parametrize(("count", "is_taken"), [(avro_rules.FIELDS_MAX, True), (avro_rules.FIELDS_MAX + 1, False)])
def test_a_record_has_no_more_fields_than_are_looked_through_quickly(count: int, is_taken: bool) -> None:
    definition = _avro(_record("outer", _field("inner", _many_fields(count, ""))))
    if is_taken:
        check_definition(definition)
    else:
        with pytest.raises(SchemaRefused, match="4097 fields"):
            check_definition(definition)


def test_a_large_definition_does_not_hold_the_loop() -> None:
    """Checked, compared and stored on the loop it took 100,000 steps for each 10 KB."""

    async def scenario() -> int:
        node = Broker(SharedTree(), FakeLedgers())
        await node.registry.put("t/n/x", _avro(_many_fields(500, "")), Strategy.FULL)
        fields = [*_many_fields(500, "")["fields"], _field("more", "int", default=0)]
        with Counter() as counter:
            assert await node.registry.put("t/n/x", _avro(_record("r", *fields)), Strategy.FULL) == 1
        return counter.longest

    assert asyncio.run(scenario()) < 200_000, "most are the bytes of the definition"
