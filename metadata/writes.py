"""Single writes in terms of a commit: what the stores of this process have in common. Owns no state."""

from collections.abc import Sequence

from metadata.store import ANY_VERSION, Delete, Operation, Put, Stat


class WritesByCommit:
    """`put` and `delete` of a `MetadataStore` that has `commit`."""

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        raise NotImplementedError

    async def put(
        self,
        path: str,
        value: bytes,
        expected_version: int = ANY_VERSION,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> Stat:
        (stat,) = await self.commit([Put(path, value, expected_version, ephemeral, sequential)])
        assert stat is not None
        return stat

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        await self.commit([Delete(path, expected_version)])
