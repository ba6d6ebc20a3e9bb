"""Names for producers that bring none: `<cluster>-<n>-<m>`, n new at each start (Apache's DistributedIdGenerator)."""

from metadata.store import MetadataStore, StoreFull

_COUNTER = "/counters/producer-name/-"


class ProducerNames:
    """Never gives a name twice, over restarts and over brokers on one metadata store."""

    def __init__(self, cluster: str, instance: int) -> None:
        self._prefix = f"{cluster}-{instance}-"
        self._next = 0

    @classmethod
    async def open(cls, store: MetadataStore, cluster: str, now_ms: int) -> "ProducerNames":
        """Where the disk of the metadata is full the time stands in for the count, which never gets so far."""
        try:
            stat = await store.put(_COUNTER, b"", sequential=True)
        except StoreFull:
            return cls(cluster, now_ms)
        return cls(cluster, int(stat.path.rpartition("-")[2]))

    def new(self) -> str:
        name = f"{self._prefix}{self._next}"
        self._next += 1
        return name
