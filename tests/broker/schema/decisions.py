"""Pairs of schemas, each tried with every strategy on an Apache Pulsar: `python -m tests.broker.schema.decisions URL FILE`.

Writes what that broker decided: for each case and strategy whether the second schema may follow the first, and the definitions.
`apache-4.0.8.json` is of Apache Pulsar 4.0.8; `test_apache_decisions.py` holds ours to it.
"""

import base64
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

STRATEGIES = (
    "ALWAYS_COMPATIBLE", "ALWAYS_INCOMPATIBLE", "BACKWARD", "FORWARD", "FULL",
    "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
)  # fmt: skip
NAMESPACE = "public/schema-decisions"
SECONDS_MAX = 10.0
"""Apache never answers some of these."""

Schema = tuple[str, str, dict[str, str]]


def record(*fields: Any, name: str = "R", **more: Any) -> Any:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> Any:
    return {"name": name, "type": kind, **more}


A = field("a", "int")
AVRO_PAIRS: dict[str, tuple[Any, Any]] = {
    "same": (record(A), record(A)),
    "field with a default added": (record(A), record(A, field("b", "int", default=1))),
    "field without a default added": (record(A), record(A, field("b", "int"))),
    "field with a default removed": (record(A, field("b", "int", default=1)), record(A)),
    "field without a default removed": (record(A, field("b", "int")), record(A)),
    "nullable field added": (record(A), record(A, field("b", ["null", "string"], default=None))),
    "nullable field without default added": (record(A), record(A, field("b", ["null", "string"]))),
    "int to long": (record(A), record(field("a", "long"))),
    "long to int": (record(field("a", "long")), record(A)),
    "int to float": (record(A), record(field("a", "float"))),
    "float to double": (record(field("a", "float")), record(field("a", "double"))),
    "int to string": (record(A), record(field("a", "string"))),
    "string to bytes": (record(field("a", "string")), record(field("a", "bytes"))),
    "bytes to string": (record(field("a", "bytes")), record(field("a", "string"))),
    "int to nullable int": (record(A), record(field("a", ["null", "int"]))),
    "nullable int to int": (record(field("a", ["null", "int"])), record(A)),
    "branch added": (record(field("a", ["int", "string"])), record(field("a", ["int", "string", "boolean"]))),
    "branches in another order": (record(field("a", ["int", "string"])), record(field("a", ["string", "int"]))),
    "renamed field": (record(A), record(field("x", "int"))),
    "renamed field with an alias": (record(A), record(field("x", "int", aliases=["a"]))),
    "renamed record": (record(A), record(A, name="S")),
    "renamed record with an alias": (record(A), record(A, name="S", aliases=["R"])),
    "renamed record, with an alias for its field": (record(A), record(field("x", "int", aliases=["a"]), name="S")),
    "renamed record with an alias, and one for its field": (
        record(A),
        record(field("x", "int", aliases=["a"]), name="S", aliases=["R"]),
    ),
    "an alias that is a field's name": (record(A), record(field("a", "string", default=""), field("x", "int", aliases=["a"]))),
    "an alias that makes two fields one": (record(A, field("b", "int")), record(field("b", "int", aliases=["a"]))),
    "renamed enumeration with an alias, in a namespace": (
        record(field("a", {"type": "enum", "name": "E", "symbols": ["X"]}), namespace="n"),
        record(field("a", {"type": "enum", "name": "F", "symbols": ["X"], "aliases": ["E"]}), namespace="n"),
    ),
    "record of a union that fits by another name alone": (
        record(field("r", record(A, name="N"))),
        record(field("r", [record(field("a", "string"), name="N"), record(A, name="M")])),
    ),
    "record of a union that fits by another name": (
        record(field("r", record(A, name="N"))),
        record(field("r", [record(field("b", "string"), name="L"), record(A, name="M")])),
    ),
    "record in another namespace": (record(A, namespace="one"), record(A, namespace="two")),
    "symbol added": (
        record(field("a", {"type": "enum", "name": "E", "symbols": ["X"]})),
        record(field("a", {"type": "enum", "name": "E", "symbols": ["X", "Y"]})),
    ),
    "symbol added, with a default": (
        record(field("a", {"type": "enum", "name": "E", "symbols": ["X"], "default": "X"})),
        record(field("a", {"type": "enum", "name": "E", "symbols": ["X", "Y"], "default": "X"})),
    ),
    "fixed of another size": (
        record(field("a", {"type": "fixed", "name": "F", "size": 4})),
        record(field("a", {"type": "fixed", "name": "F", "size": 8})),
    ),
    "array of longs": (
        record(field("a", {"type": "array", "items": "int"})),
        record(field("a", {"type": "array", "items": "long"})),
    ),
    "map of strings": (
        record(field("a", {"type": "map", "values": "int"})),
        record(field("a", {"type": "map", "values": "string"})),
    ),
    "nested field added": (
        record(field("a", record(field("n", "int"), name="N"))),
        record(field("a", record(field("n", "int"), field("m", "int", default=0), name="N"))),
    ),
    "nested field changed": (
        record(field("a", record(field("n", "int"), name="N"))),
        record(field("a", record(field("n", "string"), name="N"))),
    ),
    "a list that refers to itself": (
        record(A, field("next", ["null", "R"], default=None)),
        record(field("a", "long"), field("next", ["null", "R"], default=None)),
    ),
    "logical type taken away": (record(field("a", {"type": "int", "logicalType": "date"})), record(A)),
    "only the documentation": (record(A), record(field("a", "int", doc="of a"))),
    "a dollar in the name": (record(A, name="Outer$R"), record(A, field("b", "int", default=1), name="Outer$R")),
    "a wrong default": (record(A), record(A, field("b", "int", default="x"))),
}


def message(*fields: tuple[str, int, int, int], name: str = "M", package: str = "p") -> str:
    described = [FieldDescriptorProto(name=of, number=number, type=kind, label=label) for of, number, kind, label in fields]  # type: ignore[arg-type]  # enums are ints here
    file = FileDescriptorProto(name="m.proto", package=package, message_type=[DescriptorProto(name=name, field=described)])
    files = FileDescriptorSet(file=[file]).SerializeToString()
    definition = {
        "fileDescriptorSet": base64.b64encode(files).decode(),
        "rootMessageTypeName": f"{package}.{name}",
        "rootFileDescriptorName": "m.proto",
    }
    return json.dumps(definition)


INT32, INT64, STRING, OPTIONAL, REQUIRED = 5, 3, 9, 1, 2
ONE = ("a", 1, INT32, OPTIONAL)
PROTOBUF_PAIRS = {
    "optional field added": (message(ONE), message(ONE, ("b", 2, STRING, OPTIONAL))),
    "another root": (message(ONE), message(ONE, name="N")),
    "int32 to int64": (message(ONE), message(("a", 1, INT64, OPTIONAL))),
    "another name of a number": (message(ONE), message(("z", 1, INT32, OPTIONAL))),
    "int32 to string": (message(ONE), message(("a", 1, STRING, OPTIONAL))),
    "required field added": (message(ONE), message(ONE, ("b", 2, STRING, REQUIRED))),
    "required field removed": (message(ONE, ("b", 2, STRING, REQUIRED)), message(ONE)),
}


def key_value(key: Any, value: Any, kind: str = "JSON") -> Schema:
    text = json.dumps({"key": key, "value": value})
    empty = json.dumps({})
    properties = {
        "key.schema.name": "", "key.schema.type": kind, "key.schema.properties": empty,
        "value.schema.name": "", "value.schema.type": kind, "value.schema.properties": empty,
        "kv.encoding.type": "INLINE",
    }  # fmt: skip
    return "KEY_VALUE", text, properties


def cases() -> Iterator[tuple[str, Schema, Schema]]:
    for kind in ("AVRO", "JSON", "PROTOBUF"):
        for what, (old, new) in AVRO_PAIRS.items():
            yield f"{kind}: {what}", (kind, json.dumps(old), {}), (kind, json.dumps(new), {})
    for what, (before, after) in PROTOBUF_PAIRS.items():
        yield f"PROTOBUF_NATIVE: {what}", ("PROTOBUF_NATIVE", before, {}), ("PROTOBUF_NATIVE", after, {})
    for what in ("field without a default added", "field with a default added", "int to string"):
        old, new = AVRO_PAIRS[what]
        yield f"KEY_VALUE: key, {what}", key_value(old, old), key_value(new, old)
        yield f"KEY_VALUE: value, {what}", key_value(old, old, "AVRO"), key_value(old, new, "AVRO")
    yield "STRING to INT32", ("STRING", "", {}), ("INT32", "", {})
    yield "STRING with properties", ("STRING", "", {}), ("STRING", "", {"p": "1"})
    yield "AVRO to JSON", ("AVRO", json.dumps(record(A)), {}), ("JSON", json.dumps(record(A)), {})
    yield "AVRO to STRING", ("AVRO", json.dumps(record(A)), {}), ("STRING", "", {})
    yield "AVRO union", ("AVRO", json.dumps(record(A)), {}), ("AVRO", json.dumps(["int", "string"]), {})
    yield "AVRO string", ("AVRO", json.dumps("string"), {}), ("AVRO", json.dumps("bytes"), {})
    yield "AVRO nonsense", ("AVRO", json.dumps(record(A)), {}), ("AVRO", "{]", {})


def ask(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except TimeoutError:
        return 0, f"no answer within {SECONDS_MAX} s"


def payload(schema: Schema) -> dict[str, Any]:
    kind, text, properties = schema
    return {"type": kind, "schema": text, "properties": properties}


def decide_by(url: str, strategy: str) -> dict[str, tuple[int, int]]:
    """Returns for each case the statuses of the first and the second schema: 200, or 409 and others for a refusal."""
    namespace = f"{NAMESPACE}-{strategy.lower().replace('_', '-')}"
    ask(url, "PUT", f"/admin/v2/namespaces/{namespace}")
    status, answer = ask(url, "PUT", f"/admin/v2/namespaces/{namespace}/schemaCompatibilityStrategy", strategy)
    assert status == 204, (status, answer)
    found = {}
    for number, (name, old, new) in enumerate(cases()):
        path = f"/admin/v2/schemas/{namespace}/t{number}/schema"
        found[name] = (ask(url, "POST", path, payload(old))[0], ask(url, "POST", path, payload(new))[0])
        ask(url, "DELETE", f"{path}?force=true")
    ask(url, "DELETE", f"/admin/v2/namespaces/{namespace}?force=true")
    return found


def decide(url: str) -> dict[str, Any]:
    with ThreadPoolExecutor(len(STRATEGIES)) as pool:
        by_strategy = dict(zip(STRATEGIES, pool.map(partial(decide_by, url), STRATEGIES), strict=True))
    return {
        name: {"old": old, "new": new, "put": {strategy: found[name] for strategy, found in by_strategy.items()}}
        for name, old, new in cases()
    }


if __name__ == "__main__":
    decided = decide(sys.argv[1])
    with open(sys.argv[2], "w") as file:
        json.dump(decided, file, indent=1)
        file.write("\n")
