"""HTTP requests from a command's template and its values. Pure.

`{topic}` in a path is the topic with its domain, `{bare-topic}` without; `{namespace}` must be tenant/namespace. All are
encoded, slashes in a topic's own name too. A path segment, a query parameter or a member of a body that has no value is left
out. A flag in a query is true or false; `{?flag}` is there only when it is given, `{!flag}` is the contrary.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from cli.admin.arguments import WrongUsage
from cli.admin.table import Command

ADMIN = "/admin/v2/"
DOMAINS = ("persistent", "non-persistent")
_PLACE = re.compile(r"\{([\w-]+)\}")
_WHOLE = re.compile(r"\{([?!]?)([\w-]+)\}\Z")


class Request(NamedTuple):
    """`path` with its query, encoded; `body` None for none."""

    method: str
    path: str
    body: bytes | None = None
    media_type: str = "application/json"


class TopicName(NamedTuple):
    """A whole topic name, taken apart; `local` may hold slashes."""

    domain: str
    tenant: str
    namespace: str
    local: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.tenant}/{self.namespace}/{self.local}"

    @property
    def path(self) -> str:
        return "/".join(quote(part, safe="") for part in self)

    def partition(self, index: int) -> "TopicName":
        return self._replace(local=f"{self.local}-partition-{index}")


def topic_name(text: str) -> TopicName:
    """Short names are of public/default, and persistent; TopicName of Apache. WrongUsage when it is none."""
    domain, has_domain, rest = text.partition("://")
    if not has_domain:
        domain, rest = "persistent", text
        parts = text.split("/")
        if len(parts) == 1:
            rest = f"public/default/{text}"
        elif len(parts) != 3:
            raise WrongUsage(
                f"Invalid short topic name '{text}', it should be in the format of <tenant>/<namespace>/<topic> or <topic>"
            )
    if domain not in DOMAINS:
        raise WrongUsage(f"Invalid topic domain: '{domain}'")
    tenant, _, local = rest.partition("/")
    namespace, _, local = local.partition("/")
    if not (tenant and namespace and local):
        raise WrongUsage(f"Invalid topic name: {text}; expected {domain}://tenant/namespace/topic")
    return TopicName(domain, tenant, namespace, local)


def namespace_name(text: str) -> str:
    tenant, _, namespace = text.partition("/")
    if not (tenant and namespace) or "/" in namespace:
        raise WrongUsage(f"Invalid namespace format. expected <tenant>/<namespace> but got: {text}")
    return text


def built(command: Command, values: Mapping[str, Any]) -> Request:
    """WrongUsage when a name in it is malformed."""
    method, _, target = command.request.partition(" ")
    path, _, query = target.partition("?")
    filled = "/".join(_segment(part, values) for part in path.split("/") if _has_value(part, values))
    return Request(
        method,
        (filled if path.startswith("/") else ADMIN + filled) + _query(query, values),
        _body(command, values) if method in ("PUT", "POST") or command.body is not None else None,
        command.media_type,
    )


def _has_value(part: str, values: Mapping[str, Any]) -> bool:
    found = _WHOLE.match(part)
    return not found or found[2].endswith("-topic") or values.get(found[2]) is not None


def _segment(part: str, values: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda found: _path_value(found[1], values), part)


def _path_value(key: str, values: Mapping[str, Any]) -> str:
    if key == "bare-topic":
        return topic_name(str(values["topic"])).path.partition("/")[2]
    if key == "non-persistent-topic":
        return _non_persistent(topic_name(str(values["topic"]))).path
    value = values.get(key)
    if key == "topic":
        return topic_name(str(value)).path
    if key == "namespace":
        return namespace_name(str(value))
    return quote(str(value), safe=":")


def _non_persistent(topic: TopicName) -> TopicName:
    if topic.domain != "non-persistent":
        raise WrongUsage("Need to provide a non-persistent topic name")
    return topic


def _query(template: str, values: Mapping[str, Any]) -> str:
    pairs = []
    for pair in template.split("&") if template else ():
        name, _, text = pair.partition("=")
        found = _WHOLE.match(text)
        value = _asked_for(found[1], values.get(found[2])) if found else text
        if value is not None:
            pairs += [f"{name}={quote(_query_text(each), safe='')}" for each in (value if isinstance(value, list) else [value])]
    return "?" + "&".join(pairs) if pairs else ""


def _asked_for(how: str, value: Any) -> Any:
    match how:
        case "?":
            return value or None
        case "!":
            return not value
    return value


def _query_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _body(command: Command, values: Mapping[str, Any]) -> bytes:
    if command.body is None:
        return b""
    filled = filled_template(command.body, values)
    if command.body_is_text:
        return str(filled).encode()
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":")).encode()


def filled_template(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with values in its places; members without a value are not there."""
    if isinstance(template, str):
        found = _WHOLE.match(template)
        return values.get(found[2]) if found else template
    if isinstance(template, Mapping):
        filled = {key: filled_template(each, values) for key, each in template.items()}
        return {key: each for key, each in filled.items() if each is not None}
    if isinstance(template, list):
        return [filled_template(each, values) for each in template]
    return template


def filled_sentence(template: str, values: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda found: str(values.get(found[1])), template)


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
