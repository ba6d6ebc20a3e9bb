"""Requests that carry JSON, for the commands that need code. Pure."""

import json
from typing import Any

from cli.admin.request import ADMIN, Request


def get(path: str) -> Request:
    return Request("GET", ADMIN + path)


def put(path: str, value: Any = None) -> Request:
    return Request("PUT", ADMIN + path, encoded(value))


def post(path: str, value: Any = None) -> Request:
    return Request("POST", ADMIN + path, encoded(value))


def delete(path: str) -> Request:
    return Request("DELETE", ADMIN + path)


def encoded(value: Any) -> bytes:
    return b"" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
