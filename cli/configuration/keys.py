"""The keys of Apache's broker: names, defaults, and which of them change while a broker runs (`conf/apache-broker-keys.txt`).

Read off ServiceConfiguration 4.2.4. Owns the form of that file: a line is `key=default`, then `[dynamic]`, `[deprecated]`; and
that of `conf/apache-keys-of-other-versions.txt`, with what other versions of Apache's brokers, bookies and proxies know.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "conf" / "apache-broker-keys.txt"
OTHER_VERSIONS = FILE.with_name("apache-keys-of-other-versions.txt")


@dataclass(frozen=True, slots=True)
class ApacheKey:
    """A key with the default of Apache's class (a list is comma separated; nothing and null are the empty text)."""

    name: str
    default: str
    dynamic: bool
    deprecated: bool


@functools.cache
def apache_broker_keys() -> Mapping[str, ApacheKey]:
    """Keys by name, in the order of the names."""
    return {key.name: key for key in map(_parsed, FILE.read_text().splitlines())}


def _parsed(text: str) -> ApacheKey:
    rest, deprecated = text.removesuffix(" [deprecated]"), text.endswith(" [deprecated]")
    name, _, default = rest.removesuffix(" [dynamic]").partition("=")
    return ApacheKey(name, default, rest.endswith(" [dynamic]"), deprecated)


@functools.cache
def keys_of_other_versions(name: str) -> Mapping[str, str]:
    """Keys with their defaults, of `broker`, `bookkeeper` or `proxy`."""
    found: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for text in OTHER_VERSIONS.read_text().splitlines():
        if text.startswith("["):
            section = found.setdefault(text.strip("[]"), {})
        elif text and not text.startswith("#"):
            key, _, default = text.partition("=")
            section[key] = default
    return found[name]
