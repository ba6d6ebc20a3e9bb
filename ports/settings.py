"""Settings: one frozen dataclass per package, filled from Apache's keys. Pure.

A field `managed_ledger_cache_size_mb` is the key `managedLedgerCacheSizeMB`: the same letters and digits, case and
underscores apart. The type of the field says how the text is read: bool, int, float, str, a tuple of str (comma separated), or
one of them or None.
"""

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

S = TypeVar("S")


class BadSetting(Exception):
    """An unknown key, or a value that does not fit; the message names it and the remedy."""


def fold(key: str) -> str:
    """Common form of Apache's key and our field name."""
    return key.replace("_", "").lower()


def is_secret(key: str) -> bool:
    """Whether the value of `key` must not be shown. Apache's keys tell by their names."""
    name = fold(key)
    return any(word in name for word in _SECRET_WORDS) and not name.endswith(_OF_SECRETS)


_SECRET_WORDS = ("password", "secret", "passwd", "authenticationparameters", "authparameters", "authparams", "pluginparams",
                 "credential", "privatekey", "masterkey", "basicauthconf")  # fmt: skip
_OF_SECRETS = ("path", "passwordprovider")
"""Endings of keys that name the place of a secret, which is no secret itself."""


def shown_value(key: str, value: str) -> str:
    """Setting as people, logs and answers may see it: nothing of a secret, and a URL without its credentials."""
    if is_secret(key):
        return value and MASK
    return _OF_URLS.sub(MASK, value)


MASK = "*****"
_OF_URLS = re.compile(r"(?<=://)[^/\s@,;]+:[^/\s@,;]+(?=@)|((?<=password=)|(?<=secret=)|(?<=token=))[^&;,\s]+", re.I)
"""A user with a password before the host, and parameters that are secrets."""


def known_key(key: str, known: Iterable[str]) -> str:
    """`key` if it is known; otherwise BadSetting with the nearest name that is."""
    names = {fold(name): name for name in known}
    if key in names.values():
        return key
    near = difflib.get_close_matches(fold(key), names, n=1, cutoff=0.6)
    hint = f"; did you mean {names[near[0]]}?" if near else "; nothing is called like it: take it out"
    raise BadSetting(f"unknown setting {key}{hint}")


def build_settings(cls: type[S], values: Mapping[str, str]) -> S:
    """An instance of the dataclass `cls` with the fields that `values` names (Apache's keys); the rest keep their defaults."""
    by_fold = {fold(key): (key, value) for key, value in values.items()}
    hints = typing.get_type_hints(cls)
    given: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # S is always a dataclass; typing has no bound for that
        found = by_fold.get(fold(field.name))
        if found is not None and not _is_unset(found[1], hints[field.name]):
            given[field.name] = _convert(found[0], found[1], hints[field.name])
    try:
        return cls(**given)
    except ValueError as error:
        raise BadSetting(str(error)) from error


def overwrite(settings: S, fresh: S) -> None:
    """Give an instance that others hold the values of `fresh`: frozen means that only the configuration does this."""
    for field in dataclasses.fields(fresh):  # type: ignore[arg-type]  # S is always a dataclass; typing has no bound for that
        object.__setattr__(settings, field.name, getattr(fresh, field.name))


def setting_text(value: Any) -> str:
    """Setting as it would stand in a file."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
    return str(value)


def _is_unset(text: str, hint: Any) -> bool:
    """An empty value leaves the default, as with Apache's FieldParser; what may be absent becomes absent, and a list empty."""
    return not text.strip() and hint in (bool, int, float, str)


def _convert(key: str, text: str, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        if text in ("", "null"):
            return None
        hint = next(part for part in hint.__args__ if part is not types.NoneType)
    try:
        return _READERS[typing.get_origin(hint) or hint](text)
    except ValueError as error:
        raise BadSetting(f"{key}={shown_value(key, text)}: {error}") from error


def _read_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def _read_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _read_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number") from None


def _read_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_READERS: dict[Any, Any] = {bool: _read_bool, int: _read_int, float: _read_float, str: str, tuple: _read_list}
