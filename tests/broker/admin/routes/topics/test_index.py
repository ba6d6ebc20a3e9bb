"""Messages by their index over REST (PIP-415), and what the broker stored in front of a message."""

from array import array
from typing import Any

import pytest

from broker.policies.topic_settings import TopicSettings
from managed_ledger.settings import BROKER_ENTRY_METADATA_INTERCEPTORS
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.topic.topic_world import payload, send_run, settle
from wire.kernels.stamps import stamp

SETTINGS = TopicSettings(broker_entry_metadata_interceptors=BROKER_ENTRY_METADATA_INTERCEPTORS)
COUNTS = (2, 1, 4, 1)
HELD = (0, 0, 1, 2, 2, 2, 2, 3)
"""Entry that holds the message of each index, as a place in `COUNTS`."""


async def filled(world: AdminWorld, name: str = "t") -> Any:
    """An entry from before there were indexes, then entries with so many messages."""
    await world.done("PUT", f"{name}/subscription/s", {"ledgerId": -1, "entryId": -1})
    topic = await world.loaded(f"{NAME}/{name}")
    await topic.ledger.append(send_run([0], [payload()]).entries)
    batch = send_run(range(len(COUNTS)), [payload() for _ in COUNTS]).entries
    await topic.ledger.append(stamp(batch, array("I", COUNTS), 1_700_000_000_000, -1, True))
    await settle()
    return topic


def test_the_entry_that_holds_an_index_is_told_and_a_subscription_reset_to_it_begins_there() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        for index, place in enumerate(HELD):
            found = (await world.topic("GET", f"t/getMessageIdByIndex?index={index}")).json
            assert found == {"ledgerId": 3, "entryId": place + 1, "partitionIndex": -1}
            await world.done("POST", "t/subscription/s/resetcursor", found)
            assert topic.subscriptions.get("s").cursor.backlog_entries() == len(COUNTS) - place
        for beyond in (8, 10**18):
            answer = await world.topic("GET", f"t/getMessageIdByIndex?index={beyond}")
            assert answer.refused == (404, f"Message not found for index {beyond}")

    play(scenario, topic_settings=SETTINGS)


@pytest.mark.parametrize("query", ["", "?index=", "?index=-1", "?index=x", "?index=" + "9" * 20])
def test_an_invalid_message_index_is_404(query: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        await filled(world)
        status, reason = (await world.topic("GET", f"t/getMessageIdByIndex{query}")).refused
        assert status == 404
        assert reason.startswith("Invalid message index: ")

    play(scenario, topic_settings=SETTINGS)


def test_without_indexes_it_is_412_and_on_a_partitioned_topic_405() -> None:
    async def scenario(world: AdminWorld) -> None:
        await filled(world)
        answer = await world.topic("GET", "t/getMessageIdByIndex?index=0")
        assert answer.refused == (412, "GetMessageIDByIndex is not allowed when broker entry metadata is disabled")
        await world.done("PUT", "p/partitions", 2)
        assert (await world.topic("GET", "p/getMessageIdByIndex?index=0")).status == 405

    play(scenario)


def test_a_message_is_shown_with_what_the_broker_stored_in_front_of_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        await filled(world)
        for number, index in ((1, None), (2, "1"), (4, "6")):
            answer = await world.topic("GET", f"t/subscription/s/position/{number}")
            headers = {name.lower(): value for name, value in answer.headers.items()}
            assert headers.get("x-pulsar-broker-entry-metadata-index") == index
            time = "2023-11-14T22:13:20.000Z" if index else None
            assert headers.get("x-pulsar-broker-entry-metadata-timestamp") == time

    play(scenario, topic_settings=SETTINGS)
