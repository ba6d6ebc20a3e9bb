"""Passwords: AuthenticationProviderBasic, users of an htpasswd file. The role is the user's name."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ports.settings import BadSetting

from ..settings import SecuritySettings
from .key_material import read_material
from .password_hashes import is_readable, matches
from .principals import AuthenticationRefused, Principal, Shown

METHOD = "basic"
SHOWN_BYTES_MAX = 4096
_BASIC = "Basic "
_UNKNOWN = "$apr1$nobody$AAAAAAAAAAAAAAAAAAAAAA"
"""Hash to compare with for an unknown name, so that the time of an answer does not reveal which names exist."""


class PasswordProvider:
    """BadSetting when there are no users, or a hash is of a kind that cannot be checked."""

    method = METHOD

    def __init__(self, settings: SecuritySettings, environ: Mapping[str, str]) -> None:
        if not settings.basic_auth_conf:
            raise BadSetting("AuthenticationProviderBasic: set basicAuthConf to a file that htpasswd wrote")
        text = read_material("basicAuthConf", settings.basic_auth_conf, environ).decode("utf-8", "replace")
        self._users = dict(_users(text))

    def authenticate(self, shown: Shown, now: float) -> Principal:
        if len(shown.data) > SHOWN_BYTES_MAX:
            raise AuthenticationRefused(f"more than {SHOWN_BYTES_MAX} bytes of name and password", "INVALID_AUTH_DATA")
        name, colon, password = shown.data.decode("utf-8", "replace").partition(":")
        stored = self._users.get(name, _UNKNOWN)
        if not matches(password, stored) or not colon or name not in self._users:
            raise AuthenticationRefused("unknown user or wrong password", "INVALID_AUTH_DATA")
        return Principal(name, METHOD)

    def shown_in(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> Shown | None:
        given = headers.get("authorization", "")
        if not given.startswith(_BASIC):
            return None
        try:
            return Shown(base64.b64decode(given.removeprefix(_BASIC), validate=True))
        except (binascii.Error, ValueError):
            return Shown(b"")


def _users(text: str) -> list[tuple[str, str]]:
    users = []
    for number, row in enumerate(text.splitlines(), 1):
        name, _, stored = row.strip().partition(":")
        if not name or name.startswith("#"):
            continue
        if not is_readable(stored):
            raise BadSetting(f"basicAuthConf line {number}: the hash of {name} cannot be checked; make it with htpasswd -m")
        users.append((name, stored))
    if not users:
        raise BadSetting("basicAuthConf has no user: htpasswd -c -m FILE NAME")
    return users
