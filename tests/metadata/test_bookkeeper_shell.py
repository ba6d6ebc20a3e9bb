"""Apache BookKeeper's own shell (4.17.3) and our registry on one ZooKeeper: each reads what the other wrote."""

import asyncio
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bookkeeper.ledger_metadata.codec import decode_ledger_metadata, encode_ledger_metadata
from bookkeeper.ledger_metadata.layouts import FLAT, LAYOUTS
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.ledgers import LedgerError
from metadata.zookeeper.store import ZooKeeperStore
from tests.bookkeeper.ledger_metadata.test_codec import CLOSED
from tests.metadata.conftest import open_on
from tests.metadata.test_store import run
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from tests.toolchain import maven_classpath, run_tool

pytestmark = pytest.mark.clients

POM = Path(__file__).parent / "bookkeeper_shell" / "pom.xml"
SHELL_SECONDS_MAX = 60.0
Shell = Callable[..., str]


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("needs Java and Maven to run BookKeeper's shell")
    return maven_classpath(POM, tmp_path_factory.mktemp("shell"))


@pytest.fixture
def shell(classpath: str, tmp_path: Path) -> Shell:
    """Runs a command of the shell on a metadataServiceUri; what it wrote."""

    def run_shell(uri: str, *arguments: str) -> str:
        configuration = tmp_path / "bk_server.conf"
        directories = f"journalDirectory={tmp_path}/j\nledgerDirectories={tmp_path}/l\n"
        configuration.write_text(f"metadataServiceUri={uri}\n{directories}")
        java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath]
        command = [*java, "org.apache.bookkeeper.bookie.BookieShell", "-conf", str(configuration), *arguments]
        return run_tool(command, tmp_path, SHELL_SECONDS_MAX)

    return run_shell


async def open_below(zookeeper: ZooKeeperProcess, root: str) -> ZooKeeperStore:
    whole = await open_on(zookeeper.servers)
    await whole.put(root, b"")
    await whole.close()
    return await open_on(zookeeper.servers + root)


def test_apaches_shell_reads_our_ledgers_and_we_read_its(zookeeper: ZooKeeperProcess, shell: Shell, tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await open_below(zookeeper, "/shell")
        registry = LedgerRegistry(store, Random(1))
        await registry.initialise()
        made = {(await registry.create(replace(CLOSED, format_version=version))).ledger_id: version for version in (1, 2, 3)}
        for ledger_id in (2147483646, 2147483647, 9223372036854775807):
            await store.put(registry.path(ledger_id), encode_ledger_metadata(CLOSED))
            made[ledger_id] = 3
        uri = f"zk+hierarchical://{zookeeper.servers}/shell/ledgers"
        said = await asyncio.to_thread(shell, uri, "listledgers", "-meta")
        seen = re.findall(
            r"ledgerID: (\d+)\n.*LedgerMetadata\{formatVersion=(\d), .*state=CLOSED, length=500, lastEntryId=19,", said
        )
        assert {int(ledger_id): int(version) for ledger_id, version in seen} == made
        assert said.count("ensembles={0=[b1:3181, b2:3181], 10=[b1:3181, b3:3181]}") == len(made)
        assert said.count("digestType=CRC32C, password=base64:cHc=") == len(made) - 1  # version 1 knows neither

        written = tmp_path / "metadata"
        written.write_bytes(encode_ledger_metadata(replace(CLOSED, creation_token=42)))
        await asyncio.to_thread(shell, uri, "ledgermetadata", "-ledgerid", "77", "-restorefromfile", str(written))
        found = await registry.read(77)
        assert replace(found.metadata, creation_token=None) == CLOSED
        assert decode_ledger_metadata(encode_ledger_metadata(found.metadata)) == found.metadata
        await store.close()

    run(scenario())


def test_a_cluster_that_apaches_shell_made_is_taken_as_it_is(zookeeper: ZooKeeperProcess, shell: Shell) -> None:
    """The cluster's layout differs from our default."""

    async def scenario() -> None:
        store = await open_below(zookeeper, "/shell-made")
        uri = f"zk+flat://{zookeeper.servers}/shell-made/ledgers"
        await asyncio.to_thread(shell, uri, "initnewcluster")
        before = await store.get("/ledgers/LAYOUT"), await store.get("/ledgers/INSTANCEID")
        with pytest.raises(LedgerError, match="flat layout, which is not written here"):
            await LedgerRegistry(store, Random(1)).initialise()
        registry = LedgerRegistry(store, Random(1), LAYOUTS)
        await registry.initialise()
        assert before == (await store.get("/ledgers/LAYOUT"), await store.get("/ledgers/INSTANCEID"))
        made = await registry.create(CLOSED)
        assert registry.path(made.ledger_id) == FLAT.path("/ledgers", made.ledger_id)
        said = await asyncio.to_thread(shell, uri, "listledgers", "-meta")
        assert re.findall(r"ledgerID: (\d+)\n", said) == [str(made.ledger_id)]
        await registry.delete(made.ledger_id)
        assert not await store.exists(registry.path(made.ledger_id))
        await registry.close()
        await store.close()

    run(scenario())
