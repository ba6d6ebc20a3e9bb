"""Printed output: JSON as Jackson's default pretty printer writes it, lists line by line, maps with a gap, bytes as a dump.

Pure: answers in, text out. A number keeps the digits in which the server wrote it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

GAP = "    "


class Number(str):
    """A number as the server wrote it."""

    __slots__ = ()


def parse(text: str) -> Any:
    """ValueError when it is no JSON."""
    return json.loads(text, parse_float=Number)


def pretty(value: Any, indent: str = "") -> str:
    """JSON as Jackson's DefaultPrettyPrinter writes it: objects on lines of their own, arrays on one line."""
    if isinstance(value, Mapping):
        if not value:
            return "{ }"
        inner = indent + "  "
        members = [f"{inner}{json.dumps(key, ensure_ascii=False)} : {pretty(each, inner)}" for key, each in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list):
        return f"[ {', '.join(pretty(each, indent) for each in value)} ]" if value else "[ ]"
    if isinstance(value, Number):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def plain(value: Any) -> str:
    """An object as Java prints it: lists as [a, b], maps as {k=v}, true, null."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(plain(each) for each in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}={plain(each)}' for key, each in value.items())}}}"
    return str(value)


def lines(value: Any) -> Iterator[str]:
    """One for each element."""
    for each in value or ():
        yield plain(each)


def gapped(value: Mapping[str, Any] | None) -> Iterator[str]:
    """One line a member: key, gap, value."""
    for key, each in (value or {}).items():
        yield f"{key}{GAP}{plain(each)}"


def rendered(form: str, value: Any) -> Iterable[str]:
    """The lines that a command of this output form prints."""
    if form.startswith("field:"):
        return [plain((value or {}).get(form.removeprefix("field:")))]
    if form.startswith("says:"):
        return [form.removeprefix("says:")]
    return _FORMS[form](value)


def gson(value: Any) -> str:
    """On one line, with Gson's escapes."""
    return _escaped(json.dumps(_with_numbers(value), ensure_ascii=False, separators=(",", ":")))


def _gson_pretty(value: Any, indent: int) -> str:
    return _escaped(json.dumps(_with_numbers(value), ensure_ascii=False, indent=indent))


def _with_numbers(value: Any) -> Any:
    if isinstance(value, Number):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _with_numbers(each) for key, each in value.items()}
    return [_with_numbers(each) for each in value] if isinstance(value, list) else value


def _escaped(text: str) -> str:
    for letter in "=<>&'":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _quotas(value: Any) -> Iterator[str]:
    for kind, quota in (value or {}).items():
        yield f"{kind}{GAP}BacklogQuotaImpl({', '.join(f'{key}={plain(each)}' for key, each in quota.items())})"


def _isolation(value: Any) -> Iterator[str]:
    for name, policy in (value or {}).items():
        failover = policy.get("auto_failover_policy") or {}
        lists = ", ".join(f"{key}={plain(policy.get(key))}" for key in ("namespaces", "primary", "secondary"))
        parts = f"policyType={failover.get('policy_type')}, parameters={plain(failover.get('parameters'))}"
        about = f"{lists}, autoFailoverPolicy=AutoFailoverPolicyDataImpl({parts})"
        yield f"{name}{GAP}NamespaceIsolationDataImpl({about}, unloadScope={plain(policy.get('unload_scope'))})"


def _ownership(value: Any) -> Iterator[str]:
    for bundle, about in (value or {}).items():
        words = " ".join(f"{key}={plain(about.get(key))}" for key in ("broker_assignment", "is_controlled", "is_active"))
        yield f"{bundle}{GAP}[{words}]"


_FORMS: Mapping[str, Callable[[Any], Iterable[str]]] = {
    "none": lambda value: (),
    "json": lambda value: [pretty(value)],
    "json-each": lambda value: [pretty(each) for each in value or ()],
    "gson": lambda value: [gson(value)],
    "gson-each": lambda value: [gson(each) for each in value or ()],
    "gson-pretty": lambda value: [_gson_pretty(value, 2)],
    "gson-wide": lambda value: [_gson_pretty(value, 4)],
    "quoted": lambda value: [json.dumps(json.dumps(_with_numbers(value), ensure_ascii=False, separators=(",", ":")))],
    "lines": lines,
    "map": gapped,
    "quotas": _quotas,
    "ownership": _ownership,
    "isolation": _isolation,
    "plain": lambda value: [plain(value)],
    "plain-or-nothing": lambda value: [] if value is None else [plain(value)],
    "text": lambda value: ["" if value is None else plain(value)],
    "upper": lambda value: [plain(value).upper()],
}
FORMS = frozenset(_FORMS)


def dump(data: bytes) -> str:
    """Sixteen bytes a line with offset, hexadecimal digits and printable characters, framed, as Netty's ByteBufUtil does."""
    if not data:
        return ""
    edge = f"+--------+{'-' * 49}+{'-' * 16}+"
    out = [f"{'':9}+{'-' * 49}+", f"{'':9}|  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |", edge]
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        digits = "".join(f" {byte:02x}" for byte in row)
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        out.append(f"|{start:08x}|{digits:<48} |{letters:<16}|")
    return "\n".join([*out, edge])
