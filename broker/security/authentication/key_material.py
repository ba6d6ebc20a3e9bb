"""Key material: the content that a setting with a secret names. Apache's forms: `data:`, `file:`, `env:`, a path, Base64.

Errors name the setting, never its content.
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from ports.settings import BadSetting


def read_material(setting: str, value: str, environ: Mapping[str, str]) -> bytes:
    """The bytes that `value` stands for (AuthTokenUtils.readKeyFromUrl). BadSetting."""
    if value.startswith("env:"):
        name = value.removeprefix("env:")
        if name not in environ:
            raise BadSetting(f"{setting}=env:{name}: the environment has no {name}")
        return _decoded(setting, environ[name])
    if value.startswith("data:"):
        return _data(setting, value)
    if value.startswith("file:"):
        return _file(setting, Path(unquote_to_bytes(urlsplit(value).path).decode()))
    if _is_file(value):
        return _file(setting, Path(value))
    return _decoded(setting, value)


def read_file_or_text(setting: str, value: str, environ: Mapping[str, str]) -> bytes:
    """Returns a token in the forms of Apache's clients: `file:///path`, `env:NAME`, or the text itself. BadSetting."""
    if value.startswith("file:"):
        return _file(setting, Path(unquote_to_bytes(urlsplit(value).path).decode()))
    if value.startswith("env:"):
        name = value.removeprefix("env:")
        if name not in environ:
            raise BadSetting(f"{setting}=env:{name}: the environment has no {name}")
        return environ[name].encode()
    return value.encode()


def _data(setting: str, value: str) -> bytes:
    head, comma, content = value.partition(",")
    if not comma:
        raise BadSetting(f"{setting}: expected data:;base64,... or data:,...")
    return _decoded(setting, content) if head.endswith(";base64") else unquote_to_bytes(content)


def _is_file(value: str) -> bool:
    try:
        return Path(value).is_file()
    except (OSError, ValueError):
        return False  # no path at all, such as a key that is longer than one may be


def _file(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadSetting(f"{setting}=file:{path}: {error.strerror}") from error


def _decoded(setting: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadSetting(f"{setting}: expected data:;base64,..., file:///path, env:NAME, a path or Base64") from None
