"""Topic and namespace names: parsed, checked, and turned into the names that metadata uses. Pure.

Follows Apache's TopicName, NamespaceName and NamedEntity. Names of the first version (`tenant/cluster/namespace/topic`) are
refused, and Apache's unbounded names are bounded: a name has at most `NAME_CHARACTERS_MAX` characters.
"""

import re
from dataclasses import dataclass

from metadata.paths import decode_name, encode_name

from ..errors import BrokerError, ServerError

NAME_CHARACTERS_MAX = 4096
PARTITION_SUFFIX = "-partition-"
_PARTITION_INDEX_MAX = (1 << 31) - 1
_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)
_DOMAINS = ("persistent", "non-persistent")


def invalid_name(text: str, why: str) -> BrokerError:
    return BrokerError(ServerError.INVALID_TOPIC_NAME, f"Invalid topic name: {text[:200]!r}: {why}")


def persistent_topics_path(namespace: "NamespaceName") -> str:
    """Path whose children are the persistent topics of the namespace."""
    return f"/managed-ledgers/{namespace}/persistent"


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """`tenant/namespace`."""

    tenant: str
    local_name: str

    @classmethod
    def parse(cls, text: str) -> "NamespaceName":
        """BrokerError(INVALID_TOPIC_NAME) for anything but two names of letters, digits and `-=:._`."""
        parts = text.split("/")
        if len(parts) != 2 or len(text) > NAME_CHARACTERS_MAX or not all(_ENTITY.fullmatch(part) for part in parts):
            raise invalid_name(text, "expected <tenant>/<namespace>")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.local_name}"


@dataclass(frozen=True, slots=True)
class TopicName:
    """A full topic name. `local_name` keeps its `-partition-N` suffix; `partition_index` is -1 without one."""

    domain: str
    namespace: NamespaceName
    local_name: str
    partition_index: int

    @classmethod
    def parse(cls, text: str) -> "TopicName":
        """Parses `topic`, `tenant/namespace/topic` or the full form. BrokerError(INVALID_TOPIC_NAME)."""
        if len(text) > NAME_CHARACTERS_MAX:
            raise invalid_name(text, f"longer than {NAME_CHARACTERS_MAX} characters")
        domain, separator, rest = text.partition("://")
        if not separator:
            domain, rest = "persistent", _from_short(text)
        if domain not in _DOMAINS:
            raise invalid_name(text, f"no such domain: {domain[:40]!r}")
        parts = rest.split("/", 3)
        if len(parts) == 4:
            raise invalid_name(text, "names with a cluster in them are not supported")
        if len(parts) != 3 or not parts[2]:
            raise invalid_name(text, "expected <domain>://<tenant>/<namespace>/<topic>")
        return cls(domain, NamespaceName.parse(f"{parts[0]}/{parts[1]}"), parts[2], _partition_index(parts[2]))

    @classmethod
    def of_metadata(cls, domain: str, namespace: NamespaceName, encoded: str) -> "TopicName":
        """Returns the topic of a node in metadata; a name that cannot be decoded is taken as it is."""
        try:
            local_name = decode_name(encoded)
        except ValueError:
            local_name = encoded  # no name that Pulsar would have written
        return cls(domain, namespace, local_name, _partition_index(local_name))

    @property
    def is_persistent(self) -> bool:
        return self.domain == "persistent"

    @property
    def of_other_kind(self) -> "TopicName":
        """Topic of the same name and the other kind: non-persistent for persistent, and the reverse."""
        return TopicName(_DOMAINS[self.is_persistent], self.namespace, self.local_name, self.partition_index)

    @property
    def is_partition(self) -> bool:
        return self.partition_index >= 0

    @property
    def partitioned(self) -> "TopicName":
        """The topic of which this is a partition; itself when it is none."""
        if not self.is_partition:
            return self
        base = self.local_name.rpartition(PARTITION_SUFFIX)[0]
        return TopicName(self.domain, self.namespace, base, -1)

    def partition(self, index: int) -> "TopicName":
        return TopicName(self.domain, self.namespace, f"{self.local_name}{PARTITION_SUFFIX}{index}", index)

    @property
    def managed_ledger_name(self) -> str:
        return f"{self.namespace}/{self.domain}/{encode_name(self.local_name)}"

    @property
    def managed_ledger_path(self) -> str:
        return f"/managed-ledgers/{self.managed_ledger_name}"

    @property
    def partitions_path(self) -> str:
        """Path of the metadata of the partitioned topic of this name."""
        return f"{_PARTITIONED}{self.managed_ledger_name}"

    @property
    def is_system(self) -> bool:
        """One of the topics that Apache keeps for itself: hidden from lists, never swept away."""
        return str(self.namespace) == "pulsar/system" or self.partitioned.local_name in _SYSTEM_LOCAL_NAMES

    @property
    def is_written_by_brokers(self) -> bool:
        """Whether it is a log of its namespace: uncompacted messages are kept, and the compacted ones, by key, are enough."""
        return self.local_name in _SYSTEM_LOCAL_NAMES

    @property
    def is_of_transactions(self) -> bool:
        """Whether it is a log of transactions, or the topic that names their coordinators: it is never opened as a topic
        (SystemTopicNames.isTransactionInternalName)."""
        return str(self).startswith(_TRANSACTION_BEGINNINGS) or self.local_name.endswith("__transaction_pending_ack")

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local_name}"


def path_excluding(managed_ledger_name: str) -> str | None:
    """Returns the path of the partitioned topic whose existence excludes a topic with this log. None for the system's own
    topics: those that an Apache broker made with partitions are read and written without them here.
    """
    local_name = managed_ledger_name.rpartition("/")[2]
    return None if local_name in _SYSTEM_LOCAL_NAMES else f"{_PARTITIONED}{managed_ledger_name}"


_PARTITIONED = "/admin/partitioned-topics/"
_TRANSACTION_BEGINNINGS = (
    "persistent://pulsar/system/transaction_coordinator_assign",
    "persistent://pulsar/system/__transaction_log_",
)
_SYSTEM_LOCAL_NAMES = (
    "__change_events",
    "__transaction_buffer_snapshot",
    "__transaction_buffer_snapshot_segments",
    "__transaction_buffer_snapshot_indexes",
)


def _from_short(text: str) -> str:
    parts = [part for part in text.split("/") if part]
    if len(parts) == 1:
        return f"public/default/{parts[0]}"
    if len(parts) == 3:
        return text
    raise invalid_name(text, "expected <topic> or <tenant>/<namespace>/<topic>")


def _partition_index(local_name: str) -> int:
    base, suffix, digits = local_name.rpartition(PARTITION_SUFFIX)
    if not suffix or not base or not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return -1
    index = int(digits)
    return index if str(index) == digits and index <= _PARTITION_INDEX_MAX else -1
