"""Addresses of brokers, as options have them: one host each, and a port that there can be. Pure."""

import re

from .errors import WrongOption

_PORT_MAX = 65_535
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/:,\[\]]+)"
_FORMS = {
    "service.url": (re.compile(rf"pulsar(?:\+ssl)?://{_HOST}(?::(\d+))?/*"), "pulsar://host:port or pulsar+ssl://host:port"),
    "admin.url": (re.compile(rf"https?://{_HOST}(?::(\d+))?(?:/.*)?"), "http://host:port or https://host:port"),
}


def address(option: str, text: str) -> str:
    """Without a slash at its end. WrongOption."""
    form, expected = _FORMS[option]
    found = form.fullmatch(text)
    if not found or int(found[1] or 0) > _PORT_MAX:
        raise WrongOption(f"option {option}={text}: expected {expected}, of one host")
    return text.rstrip("/")
