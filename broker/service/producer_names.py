"""Names for producers that bring none: `<cluster>-<n>-<m>`, n new at each start (Apache's DistributedIdGenerator)."""

from metadata.store import MetadataStore

_COUNTER = "/counters/producer-name/-"


class ProducerNames:
    """Never gives a name twice, over restarts and over brokers on one metadata store."""

    def __init__(self, cluster: str, instance: int) -> None:
        self._prefix = f"{cluster}-{instance}-"
        self._next = 0

    @classmethod
    async def open(cls, store: MetadataStore, cluster: str) -> "ProducerNames":
        stat = await store.put(_COUNTER, b"", sequential=True)
        return cls(cluster, int(stat.path.rpartition("-")[2]))

    def new(self) -> str:
        name = f"{self._prefix}{self._next}"
        self._next += 1
        return name
