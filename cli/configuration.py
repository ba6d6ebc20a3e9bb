"""The configuration of a server: Apache's keys from a file and from --set, checked, and what of it is not in effect here.

Owns no defaults: each package has a settings dataclass with its own. Never reads a file by itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from ports.properties import MalformedProperties, parse_properties
from ports.settings import BadSetting, build_settings, fold, known_key

S = TypeVar("S")

CONF = Path(__file__).resolve().parent.parent / "conf"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Checked keys and values, later ones first won already."""

    values: Mapping[str, str]

    def settings(self, cls: type[S]) -> S:
        """The settings dataclass `cls`, filled; BadSetting names the key that does not fit."""
        return build_settings(cls, self.values)

    def without_effect(self, *settings: type) -> list[str]:
        """Keys that were set but that none of these dataclasses knows: accepted, and said so in the log."""
        effective = {fold(field.name) for cls in settings for field in fields(cls)}
        return sorted(key for key in self.values if fold(key) not in effective)


def known_keys() -> list[str]:
    """Every key of Apache's broker.conf, bookkeeper.conf and proxy.conf, and the few that only we have (`own-keys.txt`)."""
    names = ("apache-broker-keys.txt", "apache-bookkeeper-keys.txt", "apache-proxy-keys.txt", "own-keys.txt")
    return [key for name in names for key in (CONF / name).read_text().split()]


def load_configuration(files: Iterable[tuple[str, str]], overrides: Sequence[str]) -> Configuration:
    """From (name, text) of files in order and `KEY=VALUE` overrides, the later ones winning. BadSetting names file and line."""
    known = known_keys()
    values: dict[str, str] = {}
    for name, text in files:
        try:
            properties = parse_properties(text)
        except MalformedProperties as error:
            raise BadSetting(f"{name}: {error}") from error
        for prop in properties:
            values[_checked(prop.key, known, f"{name} line {prop.line}")] = prop.value
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise BadSetting(f"--set {override}: expected KEY=VALUE")
        values[_checked(key.strip(), known, "--set")] = value.strip()
    return Configuration(values)


def _checked(key: str, known: Sequence[str], where: str) -> str:
    try:
        return known_key(key, known)
    except BadSetting as error:
        raise BadSetting(f"{where}: {error}") from error
