"""Names of topics: full names, the topic of a partition, and paths of the admin REST. Pure."""

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
    """Topic of a partition: schemas belong to it."""
    return _PARTITION.sub("", topic)


def admin_path(topic: str) -> str:
    """`persistent/tenant/namespace/name`, as it stands in a URL."""
    return quote(topic.replace("://", "/", 1))


def cursor_name(subscription: str) -> str:
    """Name of a cursor in internal stats: encoded once (Codec.encode, which is Java's URLEncoder)."""
    return quote_plus(subscription, safe="*").replace("~", "%7E")
