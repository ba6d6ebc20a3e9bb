"""Our decisions on pairs of schemas beside those of an Apache Pulsar 4.0.8 (`decisions.py` asked it)."""

import json
from pathlib import Path

import pytest

from broker.schema.compatibility import check_compatible, is_same_schema
from broker.schema.definitions import check_definition
from broker.schema.key_value import join_key_value
from broker.schema.values import SchemaData, SchemaRefused, SchemaType, Strategy

DECIDED = json.loads((Path(__file__).parent / "apache-4.0.8.json").read_text())
STRICTER = {
    "PROTOBUF_NATIVE: int32 to string": "another kind of value (docs/adr/0022-schemas-of-protobuf-messages.md)",
    "PROTOBUF_NATIVE: required field added": "a required field that the other side does not write",
    "PROTOBUF_NATIVE: required field removed": "the same",
}

OTHERWISE = {
    **dict.fromkeys(
        (f"{kind}: a dollar in the name" for kind in ("AVRO", "JSON", "PROTOBUF")),
        "4.0.8 takes no names of Java's inner classes, later brokers do again",
    ),
}


def schema_of(told: list[object]) -> SchemaData:
    kind, text, properties = told
    data = str(text).encode()
    if kind == "KEY_VALUE":
        parts = json.loads(str(text))
        data = join_key_value(*(json.dumps(parts[name]).encode() for name in ("key", "value")))
    return SchemaData(SchemaType[str(kind)], data, properties if isinstance(properties, dict) else {})


def ours(old: SchemaData, new: SchemaData, strategy: Strategy) -> tuple[bool, bool]:
    """Whether the first is a schema, and the second may follow it."""
    try:
        check_definition(old)
    except SchemaRefused:
        return False, False
    try:
        check_definition(new)
        if not is_same_schema(old, new):
            check_compatible([old], new, strategy)
    except SchemaRefused:
        return True, False
    return True, True


@pytest.mark.parametrize("case", DECIDED)
def test_schema_compatibility_matches_apache_except_where_listed(case: str) -> None:
    told = DECIDED[case]
    old, new = schema_of(told["old"]), schema_of(told["new"])
    differ = {}
    for strategy, (first, second) in told["put"].items():
        if 0 in (first, second):
            continue  # it gave no answer
        theirs = (first == 200, second == 200)
        if (found := ours(old, new, Strategy(strategy))) != theirs:
            differ[strategy] = {"ours": found, "Apache": theirs}
    if case in OTHERWISE:
        assert differ, "no other any more: take it out of OTHERWISE"
    elif case in STRICTER:
        assert all(each["Apache"] == (True, True) for each in differ.values()), STRICTER[case]
        assert differ, "no stricter any more: take it out of STRICTER"
    else:
        assert not differ
