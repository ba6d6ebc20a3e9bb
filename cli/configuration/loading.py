"""The configuration of a server: Apache's keys from a file and from --set, checked, and what of it is not in effect here.

Owns no defaults: each package has a settings dataclass with its own. Never reads a file by itself.

Settings in environment variables are taken as Apache's images take them (apply-config-from-env.py): `PULSAR_PREFIX_<key>=value`
always, and an unknown key is refused (Apache adds it to the file in silence). A variable whose name is itself a key is taken
only with `--from-env`: elsewhere it may mean something else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cli.configuration.keys import apache_broker_keys, keys_of_other_versions
from cli.configuration.older_names import with_newer_names
from ports.properties import MalformedProperties, parse_properties
from ports.settings import BadSetting, build_settings, known_key, overwrite

S = TypeVar("S")

CONF = Path(__file__).resolve().parents[2] / "conf"
STANDALONE_CONF = "standalone.conf"
"""File in CONF with the settings of a standalone, which lie under any file that it is given."""
PREFIX = "PULSAR_PREFIX_"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Checked keys and values, later ones first won already. Never printed: there are secrets among them."""

    values: Mapping[str, str] = field(repr=False)
    _made: dict[type, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def settings(self, cls: type[S]) -> S:
        """The one instance of the settings dataclass `cls` in this process, filled; BadSetting names the key that does not fit.

        Dynamic keys are changed in it (`change`): who reads a field when it is needed, and keeps no copy, sees the change."""
        made: S | None = self._made.get(cls)
        if made is None:
            made = self._made[cls] = build_settings(cls, self.values)
        return made

    def check(self, dynamic: Mapping[str, str]) -> None:
        """BadSetting when these values could not take the place of those in the files."""
        self._fresh(dynamic)

    def change(self, dynamic: Mapping[str, str]) -> None:
        """These dynamic values, and no others, are in every instance that was handed out. BadSetting: nothing has changed."""
        for cls, fresh in self._fresh(dynamic).items():
            overwrite(self._made[cls], fresh)

    def _fresh(self, dynamic: Mapping[str, str]) -> dict[type, Any]:
        values = {**self.values, **dynamic}
        return {cls: build_settings(cls, values) for cls in self._made}


def known_keys() -> list[str]:
    """Every key of Apache's broker.conf, bookkeeper.conf and proxy.conf of any version, and the few that only we have."""
    names = ("apache-bookkeeper-keys.txt", "apache-proxy-keys.txt", "own-keys.txt")
    others = (key for name in ("broker", "bookkeeper", "proxy") for key in keys_of_other_versions(name))
    return [*apache_broker_keys(), *(key for name in names for key in (CONF / name).read_text().split()), *others]


def load_configuration(files: Iterable[tuple[str, str]], overrides: Sequence[str]) -> Configuration:
    """Configuration from (name, text) of files in order, then `KEY=VALUE` overrides. BadSetting names file and line."""
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
    return Configuration(with_newer_names(values))


def _checked(key: str, known: Sequence[str], where: str) -> str:
    try:
        return known_key(key, known)
    except BadSetting as error:
        raise BadSetting(f"{where}: {error}") from error


def environment_settings(environment: Mapping[str, str], *, with_plain_names: bool) -> list[str]:
    """`KEY=VALUE` each, to stand before those of the command line. BadSetting names the variable and the nearest one."""
    known = known_keys()
    plain = {name: environment[name] for name in known if name in environment} if with_plain_names else {}
    prefixed = {_checked_variable(name, known): value for name, value in sorted(environment.items()) if name.startswith(PREFIX)}
    return [f"{key}={value.strip()}" for key, value in {**plain, **prefixed}.items()]


def _checked_variable(name: str, known: list[str]) -> str:
    try:
        return known_key(name.removeprefix(PREFIX), known)
    except BadSetting as error:
        raise BadSetting(f"{name}: {error}") from error
