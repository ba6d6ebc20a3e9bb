"""Requests for a WebSocket session: path, query and credentials as values. Pure.

Paths are those of Apache's AbstractWebSocketHandler, of version 2 (`/ws/v2/producer/persistent/TENANT/NAMESPACE/TOPIC`)
and of version 1 (`/ws/producer/persistent/TENANT/CLUSTER/NAMESPACE/TOPIC`, of which the cluster is left out).
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qsl, unquote

from .errors import Refused

PARAMETERS_MAX = 64


class Kind(StrEnum):
    """Kind of session."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Proof:
    """Credentials of a client, as a CONNECT has them. Satisfies `wire.client_end.Proof`."""

    method: str = ""
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """Request for a session. `subscription` is empty for any but a consumer."""

    kind: Kind
    topic: str
    subscription: str
    query: Mapping[str, str] = field(repr=False)


def asked(target: str) -> Asked:
    """Session that the target of a request names. Refused(404) for another path, Refused(400) for a wrong name."""
    path, _, text = target.partition("?")
    parts = path.split("/")
    is_second = parts[2:3] == ["v2"]
    kinds = parts[3:4] if is_second else parts[2:3]
    if parts[:2] != ["", "ws"] or not kinds or kinds[0] not in list(Kind):
        raise Refused(404, "no WebSocket endpoint: there are /ws/v2/producer, /ws/v2/consumer and /ws/v2/reader")
    kind = Kind(kinds[0])
    rest = [unquote(part) for part in parts[4 if is_second else 3 :]]
    names = rest if is_second else [*rest[:2], *rest[3:]]
    names, subscription = (names[:-1], names[-1]) if kind is Kind.CONSUMER else (names, "")
    local = "/".join(name for name in names[3:] if name)
    if len(names) < 4 or not local or names[0] not in ("persistent", "non-persistent"):
        raise Refused(400, "Invalid query params: Invalid topic name format")
    if kind is Kind.CONSUMER and not subscription:
        raise Refused(400, "Invalid query params: Empty subscription name")
    return Asked(kind, f"{names[0]}://{names[1]}/{names[2]}/{local}", subscription, _query(text))


def _query(text: str) -> Mapping[str, str]:
    """First value of each parameter. Refused(400)."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX, errors="strict")
    except ValueError as error:
        raise Refused(400, f"Invalid query params: {error}") from None
    return dict(reversed(pairs))


def proof_of(headers: Mapping[str, str], query: Mapping[str, str], *, has_certificate: bool) -> Proof:
    """Credentials in a request: the header Authorization, the parameter `token`, or the certificate of the connection."""
    given = headers.get("authorization", "")
    if not given and query.get("token"):
        given = f"Bearer {query['token']}"
    scheme, _, value = given.partition(" ")
    match scheme:
        case "Bearer":
            return Proof("token", value.strip().encode("utf-8", "replace"))
        case "Basic":
            try:
                return Proof("basic", base64.b64decode(value, validate=True))
            except (binascii.Error, ValueError):
                return Proof("basic", b"")
    return Proof("tls") if has_certificate else Proof()
