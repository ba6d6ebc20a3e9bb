"""What only the admin REST tells: the ledgers of a topic. Small answers, asked again while brokers are away."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from ..errors import NoSuchPosition, NoSuchTopic, Refused
from ..holes import unacknowledged
from ..ledger_places import parse_places
from ..options import Access
from ..positions import Ledger, LedgerRange
from .brokers import tried_again
from .connection import Lost
from .credentials import tls_context, token


def ledgers_of(topic: str, access: Access, with_places: bool = False) -> list[Ledger]:
    """The ledgers of a topic in order, the last one with what is in it now. NoSuchTopic, Refused, Unreachable.

    `with_places`: and where their entries are, as far as the broker tells.
    """
    return _ledgers(_internal_stats(topic, access, with_places))


def _internal_stats(topic: str, access: Access, with_places: bool) -> Mapping[str, Any]:
    path = topic.replace("://", "/", 1)
    asked_for = "?metadata=true" if with_places else ""
    return tried_again(topic, access, lambda: _get(topic, access, f"/admin/v2/{path}/internalStats{asked_for}"))


def _ledgers(body: Mapping[str, Any]) -> list[Ledger]:
    found = [_ledger(each) for each in body["ledgers"]]
    if found and not found[-1].entries:  # Apache has the open ledger's numbers elsewhere
        found[-1] = Ledger(found[-1].ledger_id, int(body["currentLedgerEntries"]), int(body["currentLedgerSize"]))
    return found


def _ledger(found: Mapping[str, Any]) -> Ledger:
    ledger_id = int(found["ledgerId"])
    # what is offloaded may not be with bookies any more
    places = None if found.get("offloaded") else parse_places(ledger_id, str(found.get("metadata", "")))
    return Ledger(ledger_id, int(found["entries"]), int(found["size"]), int(found.get("timestamp", 0)), places)


def unacknowledged_of(topic: str, subscription: str, access: Access, with_places: bool) -> list[LedgerRange]:
    """What it has not acknowledged now. NoSuchTopic, NoSuchPosition where there is no such subscription."""
    stats = _internal_stats(topic, access, with_places)
    if subscription not in stats["cursors"]:
        raise NoSuchPosition(
            f"{topic}: there is no subscription {subscription}; it has {', '.join(stats['cursors']) or 'none'}"
        )
    return unacknowledged(topic, subscription, _ledgers(stats), stats["cursors"][subscription])


def asked(topic: str, access: Access, path: str) -> Mapping[str, Any]:
    """Any other answer of the admin REST that is an object. NoSuchTopic for 404, Refused, Unreachable."""
    return tried_again(topic, access, lambda: _get(topic, access, path))


def _get(topic: str, access: Access, path: str) -> Mapping[str, Any]:
    secret = token(access)
    request = urllib.request.Request(access.admin_url + path, headers={"Authorization": f"Bearer {secret}"} if secret else {})
    context: ssl.SSLContext | None = tls_context(access) if access.admin_url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, timeout=access.timeout_seconds, context=context) as answer:
            body: Mapping[str, Any] = json.load(answer)
            return body
    except urllib.error.HTTPError as error:
        raise _refusal(topic, access, error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Lost(f"{access.admin_url}: {error}") from None


def _refusal(topic: str, access: Access, error: urllib.error.HTTPError) -> Exception:
    with error:
        said = error.read(2000).decode(errors="replace").strip()
    if error.code == http.client.NOT_FOUND:
        return NoSuchTopic(f"{topic}: there is no such topic at {access.admin_url}: {said}")
    if error.code >= http.client.INTERNAL_SERVER_ERROR:
        return Lost(f"{access.admin_url}: {error.code}: {said}")
    return Refused(f"{topic}: {access.admin_url} answers {error.code}: {said}")
