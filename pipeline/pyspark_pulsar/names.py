"""Names of topics: whole ones, which topic a partition is one of, and how the admin REST has them. Pure."""

import re
from urllib.parse import quote, quote_plus

from .errors import WrongOption

_PARTITION = re.compile(r"-partition-\d+$")


def full_name(topic: str) -> str:
    """`persistent://tenant/namespace/name`, of the short forms too."""
    if topic.startswith("persistent://"):
        return topic
    if "://" in topic:
        raise WrongOption(f"topic {topic}: only persistent topics can be read from a position")
    return f"persistent://{topic}" if topic.count("/") == 2 else f"persistent://public/default/{topic}"


def partitioned_name(topic: str) -> str:
    """Of a partition, the topic that it is one of: schemas are that one's."""
    return _PARTITION.sub("", topic)


def admin_path(topic: str) -> str:
    """`persistent/tenant/namespace/name`, as it stands in a URL."""
    return quote(topic.replace("://", "/", 1))


def cursor_name(subscription: str) -> str:
    """As internal stats call it: names of cursors are encoded once (Codec.encode, which is Java's URLEncoder)."""
    return quote_plus(subscription, safe="*").replace("~", "%7E")
