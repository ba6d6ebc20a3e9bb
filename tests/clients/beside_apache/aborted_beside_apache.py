"""Questions to two brokers, ours and Apache's, about a topic with transactions that moves from one to the other and back."""

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import count

import pulsar

from tests.clients.cluster_admin import Broker, get
from tests.clients.mixed_brokers import move, settle
from tests.clients.python_client import TIMEOUT_MS, quiet_client, until
from tests.clients.transactional_peer import TransactionalPeer
from wire.transactions import TxnAction, TxnId

SETTINGS: Mapping[str, str] = {
    "transactionCoordinatorEnabled": "true",
    "transactionBufferSnapshotMaxTransactionCount": "3",
    "transactionBufferSnapshotMinTimeInMillis": "200",
    "transactionBufferSnapshotSegmentSize": "90",
}
"""Settings for snapshot segments with a few transactions each."""

SEGMENTS = "persistent://public/default/__transaction_buffer_snapshot_segments"
COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT
ENDS = (ABORT, COMMIT, ABORT, ABORT)
ROUND = 40
READINGS_MAX = 4


def set_options(**more: str) -> list[str]:
    """Options of our broker."""
    return [f"{name}={value}" for name, value in {**SETTINGS, **more}.items()]


def stats_of(topic: str, broker: Broker) -> dict[str, object]:
    """Transaction buffer stats from the broker that serves the topic."""
    path = topic.removeprefix("persistent://")
    found: dict[str, object] = get(broker, f"/admin/v3/transactions/transactionBufferStats/{path}?segmentStats=true")
    return found


def read_all(broker: Broker, topic: str, count_min: int) -> list[str]:
    """Messages of a reader from the first one on, until nothing more comes. A broker that is slow to load the topic, or loads
    it anew, may leave an answer out: then all is read again."""
    for _ in range(READINGS_MAX):
        try:
            return _read_once(broker, topic, count_min)
        except pulsar.Timeout:
            continue
    raise AssertionError(f"{topic} was not read whole in {READINGS_MAX} readings")


def _read_once(broker: Broker, topic: str, count_min: int) -> list[str]:
    texts = list[str]()
    with closing(quiet_client(broker.ready.broker_url)) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        while reader.has_message_available() or len(texts) < count_min:
            texts.append(reader.read_next(timeout_millis=TIMEOUT_MS).data().decode())
    return texts


def take_segments(broker: Broker) -> None:
    """Apache's broker reads segments only while it serves their topic itself and has it loaded: not again after this."""
    move(SEGMENTS, broker)
    for _ in range(READINGS_MAX):
        with closing(quiet_client(broker.ready.broker_url)) as client, suppress(pulsar.Timeout):
            client.create_reader(SEGMENTS, pulsar.MessageId.earliest).close()
            return
    raise AssertionError(f"{SEGMENTS} was not loaded in {READINGS_MAX} attempts")


def keep_all(broker: Broker, topic: str) -> None:
    """Makes a subscription that nobody reads, so that no message is deleted."""
    with closing(quiet_client(broker.ready.broker_url)) as client:
        client.subscribe(topic, "keeps the log").close()


def aborted_goes_over_and_back(topic: str, first: Broker, second: Broker, *, in_segments: bool = False) -> None:
    """Each broker reads what the other one has aborted from its snapshot alone, and goes on from there."""
    expected, numbers = list[str](), count()
    for turn, broker in enumerate((first, second, first, second)):
        move(topic, broker)
        if in_segments:
            take_segments(broker)
        if turn == 0:
            keep_all(broker, topic)
        assert read_all(broker, topic, len(expected)) == expected, f"turn {turn}"
        with TransactionalPeer(broker.ready.broker_url, topic) as peer:
            for number in (next(numbers) for _ in range(ROUND)):
                txn_id, action = TxnId(3, number), ENDS[number % len(ENDS)]
                peer.publish(f"{action.name} {number}", txn_id)
                peer.publish(f"plain {number}")
                peer.end(txn_id, action)
                expected += [] if action is ABORT else [f"COMMIT {number}"]
                expected += [f"plain {number}"]
        _until_snapshot(topic, broker, numbers)
        assert read_all(broker, topic, len(expected)) == expected, f"turn {turn}"
        settle(topic, broker)


def _until_snapshot(topic: str, broker: Broker, ids: Iterator[int]) -> None:
    """Two more: the second was begun after all that had been aborted when it was asked for."""
    with TransactionalPeer(broker.ready.broker_url, topic) as peer:
        for _ in range(2):
            before = stats_of(topic, broker)["lastSnapshotTimestamps"]
            txn_id = TxnId(5, next(ids))
            peer.publish("never", txn_id)
            peer.end(txn_id, ABORT)
            until(lambda before=before: stats_of(topic, broker)["lastSnapshotTimestamps"] != before)  # type: ignore[misc]
