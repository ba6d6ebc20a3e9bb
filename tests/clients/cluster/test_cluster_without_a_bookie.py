"""Three bookies, E3 Qw3 Qa2, and one of them is killed: a broker starts and topics take messages, and the third copy is made
when the bookie is back."""

import asyncio
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from bookkeeper.repair.underreplication.tree import LEDGERS
from tests.clients.bookie_process import BookieProcess
from tests.clients.bookies.test_bookies_and_network_client import client_of
from tests.clients.broker_process import BrokerProcess
from tests.clients.python_client import names, publish, quiet_client, receive, until
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.started_process import DidNotStart

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

COUNT = 20
HEALED_SECONDS_MAX = 240.0


def marks(keeper: KazooClient, path: str = LEDGERS) -> list[int]:
    """Ids of the ledgers that are marked as under-replicated."""
    found: list[int] = []
    with suppress(NoNodeError):  # nothing was marked, or it was taken back at this moment
        for name in keeper.get_children(path):
            found += [int(name[3:])] if name.startswith("urL") else marks(keeper, f"{path}/{name}")
    return found


def registered(keeper: KazooClient) -> set[str]:
    return set(keeper.get_children("/ledgers/available")) - {"readonly"}


def test_with_one_of_three_bookies_away_a_broker_starts_and_what_it_wrote_is_copied_afterwards(
    tmp_path: Path, topic: str
) -> None:
    need_zookeeper()
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(tmp_path / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        settings = ("zkTimeout=4000", "autoRecoveryDaemonEnabled=true", "lostBookieRecoveryDelay=3600")
        bookies = [
            running.enter_context(BookieProcess(tmp_path / f"bookie-{number}", uri, *settings)).start() for number in range(3)
        ]
        keeper = KazooClient(zookeeper.servers)
        keeper.start()
        running.callback(lambda: (keeper.stop(), keeper.close()))
        away = bookies[0]
        away.kill()
        until(lambda: away.bookie_id not in registered(keeper))
        all_needed = BrokerProcess(tmp_path / "refused", zookeeper.servers, "managedLedgerDefaultAckQuorum=3")
        with pytest.raises(DidNotStart, match="2 bookies are registered"):
            all_needed.start()
        broker = running.enter_context(BrokerProcess(tmp_path / "broker", zookeeper.servers)).start()
        with closing(quiet_client(broker.ready.broker_url)) as client:
            consumer = client.subscribe(topic, "s")
            publish(client, topic, COUNT)
            assert receive(consumer, COUNT, ack=False) == names(0, COUNT)
        assert broker.stop() == 0, broker.log.read_text()
        assert "ledger created although a bookie is away" in broker.log.read_text()
        written = marks(keeper)
        assert written
        away.start()
        until(lambda: not marks(keeper), HEALED_SECONDS_MAX)
        for bookie in bookies[1:]:
            bookie.kill()
        for ledger_id in written:
            asyncio.run(read_whole(zookeeper.servers, ledger_id))


async def read_whole(servers: str, ledger_id: int) -> None:
    """Reads the ledger from the one bookie that is left; LedgerUnreadable where it lacks an entry."""
    async with client_of(servers, 3, 2) as (ledgers, _, _):
        reader = await ledgers.open(ledger_id)
        at = 0
        while at <= reader.last_entry_id:
            at = (await reader.read(at, COUNT, 1 << 20)).last_entry_id + 1
