"""The registry: versions, deletions, two brokers at once, what is kept and what cannot be read any more."""

import asyncio
import json
from dataclasses import replace

import pytest

from bookkeeper.ledgers import LedgerError
from broker.schema.registry import SchemaRegistry
from broker.schema.storage import SchemaLost, SchemaStorage
from broker.schema.values import SchemaData, SchemaRefused, SchemaType, Strategy, version_bytes, version_of
from metadata.memory import MemoryStore, SharedTree
from ports.clock import RealClock
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from tests.simulation.worlds import World, run
from wire.generated import schema_storage_pb2

ID = "public/default/t"


def avro(*fields: str, kind: SchemaType = SchemaType.AVRO, name: str = "R") -> SchemaData:
    """A record of int fields; one with a ? has a default."""
    members = [{"name": field.rstrip("?"), "type": "int", **({"default": 0} if "?" in field else {})} for field in fields]
    return SchemaData(kind, json.dumps({"type": "record", "name": name, "fields": members}).encode())


class Broker:
    def __init__(self, shared: SharedTree, ledgers: FakeLedgers) -> None:
        self.store = MemoryStore(RealClock(), shared, alone=False)
        self.storage = SchemaStorage(self.store, FakeLedgerStore(ledgers))
        self.registry = SchemaRegistry(self.storage, RealClock())


class Cluster:
    def __init__(self) -> None:
        self.shared, self.ledgers = SharedTree(), FakeLedgers()
        self.one, self.two = Broker(self.shared, self.ledgers), Broker(self.shared, self.ledgers)


def test_versions_count_from_zero_and_the_same_definition_is_one_version() -> None:
    async def scenario(_: World) -> None:
        registry = Cluster().one.registry
        assert await registry.latest(ID) is None
        assert await registry.put(ID, avro("a"), Strategy.FULL) == 0
        assert await registry.put(ID, avro("a", "b?"), Strategy.FULL) == 1
        assert await registry.put(ID, avro("a"), Strategy.FULL) == 0
        spaced = replace(avro("a"), data=json.dumps(json.loads(avro("a").data), indent=4).encode())
        assert await registry.put(ID, spaced, Strategy.FULL) == 0
        assert await registry.find(ID, avro("a", "b?")) == 1
        assert await registry.find(ID, avro("z")) is None
        latest = await registry.latest(ID)
        assert latest is not None
        assert (latest.version, latest.schema.data) == (1, avro("a", "b?").data)
        found = await registry.version(ID, 0)
        assert found is not None
        assert found.schema.data == avro("a").data
        assert await registry.version(ID, 2) is None

    run(scenario)


def test_a_version_that_no_bookie_takes_leaves_no_ledger_behind_and_is_stored_later() -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        bookies = FakeLedgerStore(cluster.ledgers)
        registry = SchemaRegistry(SchemaStorage(cluster.one.store, bookies), RealClock())
        bookies.fail_appends = 3
        for _attempt in range(3):
            with pytest.raises(LedgerError):
                await registry.put(ID, avro("a"), Strategy.FULL)
        assert not cluster.ledgers.ledgers
        assert await registry.put(ID, avro("a"), Strategy.FULL) == 0

    run(scenario)


def test_a_schema_that_may_not_follow_is_refused_and_not_stored() -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        registry = cluster.one.registry
        await registry.put(ID, avro("a"), Strategy.FULL)
        ledgers = dict(cluster.ledgers.ledgers)
        with pytest.raises(SchemaRefused, match="strategy FULL"):
            await registry.put(ID, avro("a", "b"), Strategy.FULL)
        with pytest.raises(SchemaRefused, match="exists schema type AVRO, new schema type JSON"):
            await registry.put(ID, avro("a", kind=SchemaType.JSON), Strategy.FULL)
        with pytest.raises(SchemaRefused, match="Invalid schema definition data for AVRO"):
            await registry.put(ID, SchemaData(SchemaType.AVRO, b"{]"), Strategy.ALWAYS_COMPATIBLE)
        with pytest.raises(SchemaRefused, match="auto updating is disabled"):
            await registry.put(ID, avro("a", "b?"), Strategy.FULL, may_update=False)
        assert await registry.put(ID, avro("a"), Strategy.FULL, may_update=False) == 0
        assert cluster.ledgers.ledgers == ledgers

    run(scenario)


@pytest.mark.parametrize("kind", [each for each in SchemaType if each != SchemaType.AUTO_CONSUME])
def test_each_type_is_stored_as_apache_names_it_and_comes_back_as_itself(kind: SchemaType) -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        kept = SchemaData(kind, b"definition", {"p": "1"})
        after = await cluster.one.storage.read(ID)
        assert await cluster.one.storage.append(ID, kept, after) == 0
        (found,) = (await cluster.two.storage.read(ID)).versions
        assert found.schema == kept
        (ledger,) = cluster.ledgers.ledgers
        run = await (await FakeLedgerStore(cluster.ledgers).open(ledger)).read(0, 1, 1 << 20)
        entry = schema_storage_pb2.SchemaEntry.FromString(bytes(run.payload(0)))
        stored = schema_storage_pb2.SchemaInfo.FromString(entry.schema_data)
        name = schema_storage_pb2.SchemaInfo.SchemaType.Name(stored.type)
        assert name == kind.name or (kind.name.startswith(("KEY", "LOCAL", "PROTO")) and name == kind.name.replace("_", ""))

    run(scenario)


def test_the_definition_of_an_external_schema_may_change_but_not_its_type() -> None:
    async def scenario(_: World) -> None:
        registry = Cluster().one.registry
        assert await registry.put(ID, SchemaData(SchemaType.EXTERNAL, b"{one}"), Strategy.FULL) == 0
        assert await registry.put(ID, SchemaData(SchemaType.EXTERNAL, b"{two}"), Strategy.FULL) == 1
        with pytest.raises(SchemaRefused, match="exists schema type EXTERNAL, new schema type AVRO"):
            await registry.put(ID, avro("a"), Strategy.FULL)

    run(scenario)


def test_a_transitive_strategy_asks_of_all_versions() -> None:
    async def scenario(_: World) -> None:
        registry = Cluster().one.registry
        await registry.put(ID, avro("a"), Strategy.BACKWARD)
        await registry.put(ID, avro("b?"), Strategy.BACKWARD)
        await registry.check_compatible(ID, avro("b"), Strategy.BACKWARD)
        with pytest.raises(SchemaRefused):
            await registry.check_compatible(ID, avro("b"), Strategy.BACKWARD_TRANSITIVE)

    run(scenario)


def test_two_brokers_that_put_at_once_make_one_version_each_and_no_ledger_too_many() -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        puts = [
            broker.registry.put(ID, avro("a", f"b{n % 2}?"), Strategy.FULL)
            for broker in (cluster.one, cluster.two)
            for n in range(20)
        ]
        versions = await asyncio.gather(*puts)
        assert set(versions) == {0, 1}
        assert versions[0::2] == [versions[0]] * 20
        stored = await cluster.one.storage.read(ID)
        assert stored.locator is not None
        assert {each.position.ledgerId for each in stored.locator.index} == set(cluster.ledgers.ledgers)

    run(scenario)


def test_a_deletion_is_a_version_of_its_own_and_the_next_schema_is_free() -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        registry = cluster.one.registry
        assert await registry.delete(ID, "me") is None
        await registry.put(ID, avro("a"), Strategy.FULL)
        assert await registry.delete(ID, "me") == 1
        assert await registry.latest(ID) is None
        assert await registry.version(ID, 0) is None
        assert await registry.put(ID, avro("z", kind=SchemaType.JSON), Strategy.FULL) == 2
        assert [each.version for each in await cluster.two.registry.versions(ID)] == [2]

    run(scenario)


def test_with_force_nothing_is_left() -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        await cluster.one.registry.put(ID, avro("a"), Strategy.FULL)
        await cluster.two.registry.put(ID, avro("a", "b?"), Strategy.FULL)
        assert await cluster.one.registry.delete(ID, "me", force=True) == 1
        assert not cluster.ledgers.ledgers
        assert not await cluster.one.store.exists(f"/schemas/{ID}")
        assert await cluster.two.registry.put(ID, avro("z"), Strategy.FULL) == 0

    run(scenario)


def test_a_version_whose_ledger_is_gone_is_told_by_name_and_can_be_deleted() -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        await cluster.one.registry.put(ID, avro("a"), Strategy.FULL)
        gone = next(iter(cluster.ledgers.ledgers))
        del cluster.ledgers.ledgers[gone]
        with pytest.raises(SchemaLost, match=f"version 0 of the schema of {ID}, entry {gone}:0.*delete the schema with force"):
            await cluster.two.registry.latest(ID)
        await cluster.two.registry.delete(ID, "me", force=True)
        assert await cluster.two.registry.latest(ID) is None

    run(scenario)


def test_a_schema_is_stored_where_and_as_apache_stores_it() -> None:
    async def scenario(_: World) -> None:
        cluster = Cluster()
        schema = replace(avro("a"), user="me", properties={"p": "1"})
        await cluster.one.registry.put(ID, schema, Strategy.FULL)
        node = await cluster.one.store.get(f"/schemas/{ID}")
        assert node is not None
        locator = schema_storage_pb2.SchemaLocator.FromString(node.value)
        ledger = cluster.ledgers.ledgers[locator.info.position.ledgerId]
        assert ledger.custom_metadata == {"application": b"pulsar", "component": b"schema", "pulsar/schemaId": ID.encode()}
        reader = await FakeLedgerStore(cluster.ledgers).open(ledger.ledger_id)
        run_ = await reader.read(0, 1, 1 << 20)
        info = schema_storage_pb2.SchemaInfo.FromString(
            schema_storage_pb2.SchemaEntry.FromString(bytes(run_.payload(0))).schema_data
        )
        assert (info.schema_id, info.user, info.type, info.deleted) == (ID, "me", schema_storage_pb2.SchemaInfo.AVRO, False)
        assert [(pair.key, pair.value) for pair in info.props] == [("p", "1")]
        assert list(locator.index) == [locator.info]

    run(scenario)


def test_versions_are_eight_bytes_and_an_old_clients_sixty_four_are_understood() -> None:
    assert version_bytes(258) == b"\0\0\0\0\0\0\1\2"
    assert version_of(version_bytes(7) + bytes(56)) == 7
    with pytest.raises(SchemaRefused, match="Empty schema version"):
        version_of(b"")
