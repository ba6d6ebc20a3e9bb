"""Random definitions of JSON and random texts of them, read by us and by Python's json: the differences.

Texts have more members than the definition, or fewer, some twice, numbers at their borders, line breaks, damage. `python -m
tests.pipeline.decode.random_json 1000 7`: a thousand definitions from seed 7 on.
"""

import base64
import json
import math
import random
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

import numpy

from pipeline.pyspark_pulsar.decode.octets import padded
from pipeline.pyspark_pulsar.decode.protobuf_columns import Spans
from pipeline.pyspark_pulsar.decode.values.typed import Schema, column, type_of

_DEPTH_MAX = 3
_UTC = ZoneInfo("UTC")
_SIMPLE = ("boolean", "int", "long", "float", "double", "string")
_NUMBERS = (
    *("0", "-0", "1", "-1", "127", "2147483647", "2147483648", "-2147483648", "-2147483649", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1" + 400 * "0"),
    *(
        "0.1",
        "1.0",
        "-2.50",
        "1e3",
        "1E-3",
        "1e400",
        "-1e400",
        "5e-324",
        "1e-400",
        "1.7976931348623157e308",
        "1e39",
        "16777217",
    ),
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        '"NaN"',
        '"-Infinity"',
        '"1"',
        "0.1000000014901161193847656250001",
        "1e99999999999999999999",
    ),
)
_TEXTS = ("", "a", "grüße", "\0", "\U0001f600", '\n\t"\\', "x" * 100, "NaN", "null")


class _Bad(Exception):
    """Value that does not fit the definition."""


# ---- Definitions and texts


def definition(chance: random.Random) -> dict[str, Any]:
    return _record(chance, 0, chance.random() < 0.5)


def _record(chance: random.Random, depth: int, is_plain: bool) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": _kind(chance, depth, is_plain)} for at in range(chance.randint(1, 5))]
    return {"type": "record", "name": f"R{chance.getrandbits(60)}", "fields": fields}


def _kind(chance: random.Random, depth: int, is_plain: bool) -> Any:
    if chance.random() < 0.4:
        return ["null", _branch(chance, depth, is_plain)]
    return _branch(chance, depth, is_plain)


def _branch(chance: random.Random, depth: int, is_plain: bool) -> Any:
    """One that Arrow reads (`is_plain`), or any."""
    choices: list[Any] = [*_SIMPLE, *_SIMPLE]
    if not is_plain:
        choices += ["bytes", {"type": "long", "logicalType": "timestamp-millis"}, {"type": "int", "logicalType": "date"}]
        choices += [{"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}, ["null", "int", "long", "string"]]
    if depth < _DEPTH_MAX:
        choices += [_record(chance, depth + 1, is_plain), {"type": "array", "items": _kind(chance, depth + 1, is_plain)}]
        if not is_plain:
            choices.append({"type": "map", "values": _kind(chance, depth + 1, is_plain)})
    return chance.choice(choices)


def written(chance: random.Random, kind: Any) -> str:
    """Mostly one of the kind's, at times anything."""
    if chance.random() < 0.02:
        return chance.choice([*_NUMBERS, "true", "null", "{}", "[]", '"text"', '[{"f0": 1}]', "[null]"])
    if isinstance(kind, list):
        return written(chance, chance.choice(kind))
    if isinstance(kind, str):
        return _written_simple(chance, kind)
    match kind["type"]:
        case "record":
            return _members(chance, kind)
        case "array":
            return f"[{', '.join(written(chance, kind['items']) for _ in range(chance.randint(0, 3)))}]"
        case "map":
            names = chance.choices(_TEXTS, k=chance.randint(0, 3))
            pairs = [f"{_text(chance, each)}:{written(chance, kind['values'])}" for each in names]
            return f"{{{','.join(pairs)}}}"
        case "bytes":
            return chance.choice(["0", "1.5", "-12345678901234567.125", '"7"', "1e3", "0.0001", "1" * 21])
    return str(chance.randint(-10_000, 10_000))


def _written_simple(chance: random.Random, kind: str) -> str:
    match kind:
        case "null":
            return "null"
        case "boolean":
            return chance.choice(["true", "false"])
        case "string":
            return _text(chance, chance.choice(_TEXTS))
        case "bytes":
            return json.dumps(base64.b64encode(chance.randbytes(chance.randint(0, 9))).decode())
    return chance.choice(_NUMBERS) if chance.random() < 0.3 else str(chance.randint(-1000, 1000))


def _members(chance: random.Random, kind: dict[str, Any]) -> str:
    members = [(each["name"], written(chance, each["type"])) for each in kind["fields"] if chance.random() < 0.9]
    if chance.random() < 0.3:
        members.append(("more", chance.choice(['{"f0": [1, {"a": null}]}', '"text"', "[]", '"\\ud800"', "1e999"])))
    if members and chance.random() < 0.1:
        members.append(chance.choice(members))
    chance.shuffle(members)
    gap = chance.choice(["", " ", "\n  ", "\r\n"])
    return "{" + ",".join(f"{gap}{json.dumps(name)}:{gap}{value}" for name, value in members) + gap + "}"


def _text(chance: random.Random, text: str) -> str:
    return json.dumps(text, ensure_ascii=chance.random() < 0.5)


def payloads(chance: random.Random, kind: dict[str, Any], count: int) -> list[bytes]:
    found = []
    for _ in range(count):
        text = bytearray(written(chance, kind).encode())
        if chance.random() < 0.06:
            text[chance.randrange(len(text))] = chance.choice([*b'{}[]",:\n\t\xff\0 n1', chance.getrandbits(8)])
        if chance.random() < 0.03:
            del text[chance.randint(0, len(text)) :]
        if chance.random() < 0.03:
            text += chance.choice([b" ", b"\n", b"{}", b'{"f0":1}', b"x", b"}"])
        found.append(bytes(text))
    return found


# ---- What Python's json says


def expected(text: bytes, kind: Any) -> Any:
    """_Bad where it is none of the kind's."""
    try:
        return converted(json.loads(text, parse_float=_Written), kind)
    except ValueError:
        raise _Bad from None


class _Written(str):
    """A number with a point or an exponent."""

    __slots__ = ()


def converted(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, list):
        return _of_union(value, [each for each in kind if each != "null"])
    if isinstance(kind, dict) and kind["type"] in ("record", "map", "array"):
        return _of_several(value, kind)
    if isinstance(kind, dict):
        return _logical(value, kind["logicalType"])
    return _simple(value, kind)


def _of_union(value: Any, kinds: list[Any]) -> Any:
    if len(kinds) == 1:
        return converted(value, kinds[0])
    for at, each in enumerate(kinds):
        try:
            found = converted(value, each)
        except _Bad:
            continue
        return {f"member{other}": found if other == at else None for other in range(len(kinds))}
    raise _Bad


def _of_several(value: Any, kind: dict[str, Any]) -> Any:
    if kind["type"] == "array":
        _is(type(value) is list)
        return [converted(each, kind["items"]) for each in value]
    _is(type(value) is dict)
    if kind["type"] == "map":
        return [(_simple(key, "string"), converted(each, kind["values"])) for key, each in value.items()]
    return {each["name"]: converted(value.get(each["name"]), each["type"]) for each in kind["fields"]}


def _logical(value: Any, kind: str) -> Any:
    if kind == "decimal":
        try:
            found = Decimal(str(value))
            _is(type(value) is not bool and found.is_finite() and found == round(found, 3) and abs(found) < Decimal(10) ** 17)
        except InvalidOperation:
            raise _Bad from None
        return found.quantize(Decimal("0.001")) + 0
    number = _simple(value, "int" if kind == "date" else "long")
    try:
        if kind == "date":
            return date(1970, 1, 1) + timedelta(days=number)
        return datetime(1970, 1, 1, tzinfo=_UTC) + timedelta(milliseconds=number)
    except OverflowError:
        raise _Bad from None


def _simple(value: Any, kind: str) -> Any:
    match kind:
        case "boolean":
            _is(type(value) is bool)
        case "int" | "long":
            _is(type(value) is int and -1 << (31 if kind == "int" else 63) <= value < 1 << (31 if kind == "int" else 63))
        case "string":
            _is(type(value) is str and not any("\ud800" <= each <= "\udfff" for each in value))
        case "bytes":
            _is(type(value) is str)
            return _octets(value)
        case _:
            return _number(value, kind)
    return value


def _octets(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise _Bad from None


def _number(value: Any, kind: str) -> float:
    _is(type(value) in (int, float, _Written) or (type(value) is str and value in ("NaN", "Infinity", "-Infinity")))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    with numpy.errstate(over="ignore"):
        return float(numpy.float32(number)) if kind == "float" else number


def _is(holds: bool) -> None:
    if not holds:
        raise _Bad


# ---- What is not alike


def differences(seed: int, messages: int) -> Iterator[str]:
    """Differences for one definition and so many texts."""
    chance = random.Random(seed)
    kind = definition(chance)
    yield from compared(kind, payloads(chance, kind, messages))


def compared(kind: dict[str, Any], texts: list[bytes]) -> Iterator[str]:
    """All in one column."""
    schema = Schema("JSON", json.dumps(kind).encode())
    ends = numpy.cumsum([len(each) for each in texts], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in texts], numpy.int64)
    found, broken = column(padded(b"".join(texts)), Spans(starts, ends), schema, schema)
    assert found.type == type_of(schema)
    found.validate(full=True)
    for row, text in enumerate(texts):
        try:
            theirs = repr(expected(text, kind))
        except _Bad:
            theirs = "damage"
        ours = "damage" if broken[row] else _told(found[row])
        if ours != theirs:
            yield f"{json.dumps(kind)}\n{text!r}\nours   {ours}\ntheirs {theirs}"


def _told(value: Any) -> str:
    try:
        return repr(value.as_py())
    except (ValueError, OverflowError):  # a date that Python's calendar does not have
        return "damage"


def main(count: int, first: int) -> int:
    bad = 0
    for seed in range(first, first + count):
        found = list(differences(seed, 60))
        bad += len(found)
        if found:
            print(f"seed {seed}: {len(found)} of 60\n{found[0]}")
    print(f"{count} definitions, {60 * count} texts, {bad} not alike")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
