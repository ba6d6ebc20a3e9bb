"""Names of producers that bring none: `<cluster>-<n>-<m>`, with a new n at each start (Apache's DistributedIdGenerator)."""

from metadata.store import MetadataStore, StoreFull

from ..errors import BrokerError, ServerError

_COUNTER = "/counters/producer-name/-"


class ProducerNames:
    """Generator of names that are unique over restarts and over all brokers on one metadata store."""

    def __init__(self, store: MetadataStore, cluster: str) -> None:
        self._store, self._cluster = store, cluster
        self._prefix = ""
        self._next = 0

    @property
    def are_open(self) -> bool:
        return bool(self._prefix)

    async def open(self, now_ms: int) -> None:
        """Takes n from a counter in metadata. With a full metadata disk the time stands in for n, which never gets so large."""
        try:
            stat = await self._store.put(_COUNTER, b"", sequential=True)
            instance = int(stat.path.rpartition("-")[2])
        except StoreFull:
            instance = now_ms
        self._prefix = f"{self._cluster}-{instance}-"

    def new(self) -> str:
        """Returns the next name. BrokerError(SERVICE_NOT_READY) before `open`."""
        if not self._prefix:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is starting")
        name = f"{self._prefix}{self._next}"
        self._next += 1
        return name
