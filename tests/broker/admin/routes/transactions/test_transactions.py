"""Routes and metrics of transaction coordinators, on one broker; members and statuses as Apache's."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from broker.admin.app import admin_app
from broker.errors import BrokerError, ServerError
from broker.metrics_settings import MetricsSettings
from broker.topic.contract import Acknowledgement
from broker.topic.topic import PersistentTopic
from broker.topic.transactions.markers import one_entry
from broker.transaction.coordinators import Coordinators
from broker.transaction.records import TxnSubscription
from tests.broker.admin.admin_world import AdminWorld
from tests.broker.admin.admin_world import play as play_plain
from tests.broker.admin.metrics.test_metrics import scrape
from tests.broker.connection.peer import TOPIC
from tests.broker.connection.peer import play as play_virtual
from tests.broker.topic.topic_world import payload
from tests.broker.transaction.test_coordinators import CoordinatedServer, a_server
from wire.position import Position
from wire.transactions import TxnAction, TxnId

V3 = "/admin/v3/transactions"


class Called(AdminWorld):
    """The routes of a server with coordinators."""

    def __init__(self, server: CoordinatedServer) -> None:
        self.server = server
        self.app = admin_app(server.service, server.storage.store, "1", coordinators=server.coordinators)


def play(scenario: Callable[[Called], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with a_server() as server:
            await scenario(Called(server))

    play_virtual(whole)


def test_coordinators_tell_where_they_are_and_what_they_have() -> None:
    async def scenario(world: Called) -> None:
        coordinator = await world.server.coordinators.connect(5)
        await coordinator.open("me", 60_000)
        await coordinator.add_partitions(0, [TOPIC])
        await coordinator.add_subscriptions(0, [TxnSubscription(TOPIC, "s")])
        listed = (await world.get(V3 + "/coordinators")).json
        assert [each["id"] for each in listed] == list(range(16))
        assert {each["brokerServiceUrl"] for each in listed} == {"pulsar://broker:6650"}
        one = (await world.get(V3 + "/coordinatorStats?coordinatorId=5")).json
        assert one == {
            "leastSigBits": 0,
            "lowWaterMark": -1,
            "state": "Ready",
            "ongoingTxnSize": 1,
            "recoverStartTime": one["recoverStartTime"],
            "recoverEndTime": one["recoverEndTime"],
        }
        assert (await world.get(V3 + "/coordinatorStats")).json == {"5": one}
        told = (await world.get(V3 + "/transactionMetadata/5/0")).json
        assert told == {
            "txnId": "(5,0)",
            "status": "OPEN",
            "openTimestamp": told["openTimestamp"],
            "timeoutAt": 60_000,
            "owner": "me",
            "producedPartitions": {TOPIC: {}},
            "ackedPartitions": {TOPIC: {"s": {}}},
        }
        assert (await world.get(V3 + "/slowTransactions/1000")).json == {"(5,0)": told}
        assert (await world.get(V3 + "/slowTransactions/1000?coordinatorId=5")).json == {"(5,0)": told}
        assert (await world.get(V3 + "/slowTransactions/60000")).json == {}
        inside = (await world.get(V3 + "/coordinatorInternalStats/5")).json["transactionLogStats"]
        assert inside["managedLedgerName"] == "pulsar/system/persistent/__transaction_log_5"
        assert inside["managedLedgerInternalStats"]["numberOfEntries"] == 3

    play(scenario)


def test_a_transaction_is_aborted_by_hand_once() -> None:
    async def scenario(world: Called) -> None:
        coordinator = await world.server.coordinators.connect(0)
        await coordinator.open("me", 60_000)
        await coordinator.add_partitions(0, [TOPIC])
        assert (await world.call("POST", V3 + "/abortTransaction/0/0")).status == 204
        assert list(world.server.participants.ended.values()) == [TxnAction.ABORT]
        assert (await world.get(V3 + "/transactionMetadata/0/0")).status == 404
        assert (await world.call("POST", V3 + "/abortTransaction/0/7")).status == 404
        await coordinator.open("me", 60_000)
        await coordinator.end(1, TxnAction.COMMIT)
        assert (await world.call("POST", V3 + "/abortTransaction/0/1")).status == 404

    play(scenario)


def test_missing_transaction_resources_are_404_and_coordinators_only_grow() -> None:
    async def scenario(world: Called) -> None:
        for path in ("coordinatorStats?coordinatorId=3", "coordinatorInternalStats/3", "transactionMetadata/3/0",
                     "transactionMetadata/99999999999/0", "slowTransactions/1?coordinatorId=3"):  # fmt: skip
            assert (await world.get(f"{V3}/{path}")).status == 404, path
        assert (await world.call("POST", V3 + "/transactionCoordinator/replicas", 16)).status == 406
        assert (await world.call("POST", V3 + "/transactionCoordinator/replicas", 20)).status == 204
        assert len((await world.get(V3 + "/coordinators")).json) == 20
        await world.server.coordinators.connect(19)

    play(scenario)


def test_without_coordinators_the_routes_say_which_setting_makes_them() -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.get(V3 + "/coordinators")
        assert answer.refused == (503, "This Broker is not configured with transactionCoordinatorEnabled=true.")

    play_plain(scenario)


def test_metrics_count_what_became_of_transactions_under_apaches_names() -> None:
    async def scenario(world: Called) -> None:
        coordinator = await world.server.coordinators.connect(2)
        for number, action in enumerate((TxnAction.COMMIT, TxnAction.ABORT, TxnAction.COMMIT)):
            await coordinator.open(None, 60_000)
            await coordinator.end(number, action)
        await coordinator.open(None, 500)
        await coordinator.open(None, 60_000)
        await asyncio.sleep(1)
        text = (await world.get("/metrics")).body.decode()
        found = {}
        for row in text.splitlines():
            if "coordinator_id=" in row:
                name, _, value = row.partition('{cluster="standalone",coordinator_id="2"} ')
                found[name.removeprefix("pulsar_txn_")] = int(value)
        expected = {"active_count": 1, "created": 5, "committed": 2, "aborted": 2, "timeout": 1, "append_log": 13}
        for name, count in expected.items():
            for each in [name] if name == "active_count" else [f"{name}_total", f"{name}_count"]:
                assert found[each] == count, each
        assert sum(value for name, value in found.items() if name.startswith("execution_latency_le_")) == 4
        assert found["execution_latency_le_1000"] == 1

    play(scenario)


def test_metrics_tell_what_coordinators_asked_topics_and_subscriptions() -> None:
    async def scenario(world: Called) -> None:
        participants, client = world.server.participants, "pulsar_txn_tb_client"
        coordinator = await world.server.coordinators.connect(2)
        assert (await scrape(world))[f'{client}_pending_requests{{cluster="standalone"}}'] == 0
        refusals = [BrokerError(ServerError.SERVICE_NOT_READY, "not yet")] * 2

        async def refuse(_: str) -> None:
            if refusals:
                raise refusals.pop()

        participants.before = refuse
        for number, action in enumerate((TxnAction.COMMIT, TxnAction.ABORT)):
            await coordinator.open(None, 60_000)
            await coordinator.add_partitions(number, [TOPIC])
            await coordinator.add_subscriptions(number, [TxnSubscription(TOPIC, "s")])
            await coordinator.end(number, action)
        for topic in (f',topic="{TOPIC}"', ""):
            world.server.service.meters.settings = MetricsSettings(expose_topic_level_metrics_in_prometheus=bool(topic))
            found, label = await scrape(world), f'{{cluster="standalone",namespace="public/default"{topic}}}'
            assert found[f"{client}_commit_failed_total{label}"] == 2
            assert found[f"{client}_abort_failed_total{label}"] == 0
            assert found[f"{client}_commit_latency_count{label}"] == found[f"{client}_abort_latency_count{label}"] == 2
            assert found[f"{client}_commit_latency_sum{label}"] >= 0
        assert found[f'{client}_pending_requests{{cluster="standalone"}}'] == 0

    play(scenario)


def test_metrics_of_topics_and_subscriptions_begin_with_their_first_transaction() -> None:
    async def scenario(world: AdminWorld) -> None:
        names = ("pulsar_txn_tb_", "pulsar_txn_tp_")
        topic = cast(PersistentTopic, await world.loaded("persistent://public/default/told"))
        await topic.create_subscription("s", from_earliest=True, properties={})
        assert not any(key.startswith(names) for key in await scrape(world))
        stored = [
            await topic.transactions.append(TxnId(5, number), one_entry(payload(batch=1), topic.header_bytes))
            for number in range(4)
        ]
        subscription = topic.subscriptions.get("s")
        assert subscription is not None
        await topic.end_transaction(TxnId(5, 0), TxnAction.COMMIT, -1)
        await topic.end_transaction(TxnId(5, 1), TxnAction.ABORT, -1)
        at = Position(stored[0].ledger_id, stored[0].first_entry_id)
        await subscription.transactions.acknowledge(TxnId(5, 2), Acknowledgement(False, (at,), ((),), (0,)))
        for number, action in ((2, TxnAction.COMMIT), (6, TxnAction.ABORT), (7, TxnAction.ABORT)):
            await topic.end_acknowledgements("s", TxnId(5, number), action, -1)
        for more in (',topic="persistent://public/default/told"', ""):
            world.service.meters.settings = MetricsSettings(expose_topic_level_metrics_in_prometheus=bool(more))
            found, label = await scrape(world), f'cluster="standalone",namespace="public/default"{more}'
            counts = [found[f"pulsar_txn_tb_{name}_total{{{label}}}"] for name in ("active", "aborted", "committed")]
            assert counts == [2, 1, 1]
            label += ',subscription="s"' if more else ""
            for name, count in (("committed", 1), ("aborted", 2)):
                assert found[f'pulsar_txn_tp_{name}_count_total{{{label},status="succeed"}}'] == count
                assert found[f'pulsar_txn_tp_{name}_count_total{{{label},status="failed"}}'] == 0
            assert found[f"pulsar_txn_tp_commit_latency_count{{{label}}}"] == 1

    play_plain(scenario)


def test_topics_and_subscriptions_tell_of_their_transactions() -> None:
    async def scenario(world: AdminWorld) -> None:
        world.app = admin_app(world.service, world.store, "1", coordinators=cast(Coordinators, object()))
        topic = await world.loaded("persistent://public/default/told")
        await topic.create_subscription("s", from_earliest=True, properties={})
        where = V3 + "/{}/public/default/told"
        told = (await world.get(where.format("transactionBufferStats") + "?lowWaterMarks=true&segmentStats=true")).json
        assert (told["state"], told["ongoingTxnSize"], told["totalAbortedTransactions"]) == ("NoSnapshot", 0, 0)
        await topic.end_transaction(TxnId(5, 9), TxnAction.ABORT, 3)
        told = (await world.get(where.format("transactionBufferStats") + "?lowWaterMarks=true")).json
        assert told["lowWaterMarks"] == {"5": 3}
        told = (await world.get(where.format("transactionInBufferStats") + "/5/1")).json
        assert told == {"startPosition": None, "aborted": False}
        await topic.end_acknowledgements("s", TxnId(5, 9), TxnAction.COMMIT, 4)
        told = (await world.get(where.format("pendingAckStats") + "/s?lowWaterMarks=true")).json
        assert (told["state"], told["ongoingTxnSize"], told["lowWaterMarks"]) == ("None", 0, {"5": 4})
        told = (await world.get(where.format("transactionInPendingAckStats") + "/s/5/1")).json
        assert told == {"cumulativeAckPosition": None}
        assert (await world.get(where.format("pendingAckStats") + "/nobody")).refused == (404, "Subscription not found")

    play_plain(scenario)


def test_the_transaction_buffer_and_pending_acknowledgements_of_a_topic_are_shown() -> None:
    async def scenario(world: AdminWorld) -> None:
        world.app = admin_app(world.service, world.store, "1", coordinators=cast(Coordinators, object()))
        topic = cast(PersistentTopic, await world.loaded("persistent://public/default/told"))
        await topic.create_subscription("s", from_earliest=True, properties={})
        where = V3 + "/{}/public/default/told"
        buffer, log, place = map(
            where.format, ("transactionBufferInternalStats", "pendingAckInternalStats", "positionStatsInPendingAck")
        )
        assert (await world.get(buffer)).status == 404, "there is no topic of snapshots"
        assert (await world.get(log + "/s")).refused == (503, "Pending ack have not init success!")
        assert (await world.get(log + "/nobody")).refused == (404, "Subscription not found")
        stored = await topic.transactions.append(TxnId(5, 1), one_entry(payload(batch=2), topic.header_bytes))
        told = (await world.get(buffer)).json
        assert (told["snapshotType"], told["segmentInternalStats"], told["segmentIndexInternalStats"]) == ("Single", None, None)
        single = told["singleSnapshotSystemTopicInternalStats"]
        assert single["managedLedgerName"] == "__transaction_buffer_snapshot"
        assert single["managedLedgerInternalStats"]["numberOfEntries"] == 1
        at = Position(stored.ledger_id, stored.first_entry_id)
        subscription = topic.subscriptions.get("s")
        assert subscription is not None
        await subscription.transactions.acknowledge(TxnId(5, 2), Acknowledgement(False, (at,), ((2,),), (2,)))
        told = (await world.get(log + "/s")).json["pendingAckLogStats"]
        assert told["managedLedgerName"] == "public/default/persistent/told-s__transaction_pending_ack"
        assert told["managedLedgerInternalStats"]["numberOfEntries"] == 1
        one = f"{place}/s/{at.ledger_id}/{at.entry_id}"
        for query, state in (("", "PendingAck"), ("0", "PendingAck"), ("1", "NotInPendingAck"), ("2", "InvalidPosition")):
            assert (await world.get(one + (query and f"?batchIndex={query}"))).json == {"state": state}
        assert (await world.get(f"{place}/s/{at.ledger_id}/{at.entry_id + 1}")).json == {"state": "NotInPendingAck"}
        subscription.cursor.acknowledge_cumulative(at)
        assert (await world.get(one)).json == {"state": "MarkDelete"}
        assert (await world.get(f"{place}/nobody/1/1")).refused == (404, "Subscription not found")
        assert (await world.get(f"{place}/s/{1 << 63}/1")).status == 404
        assert (await world.get(one + "?batchIndex=-1")).status == 400

    play_plain(scenario)
