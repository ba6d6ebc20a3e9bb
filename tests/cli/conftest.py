"""The cluster that tests of the shell share: started once, by the first that wants it."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bookie.web.settings import PROMETHEUS
from cli.bookkeeper_shell.__main__ import main
from tests.cli.bookkeeper_shell.shell_cluster import TICK_MS, Cluster, Result, Shell
from tests.clients.bookie_process import BookieProcess
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.started_process import free_port


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need_zookeeper()
    directory, web_port, metrics_port = tmp_path_factory.mktemp("cluster"), free_port(), free_port()
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper", f"tickTime={TICK_MS}")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        web = ("httpServerEnabled=true", "httpServerHost=127.0.0.1", f"httpServerPort={web_port}")
        where = ("prometheusStatsHttpAddress=127.0.0.1", f"prometheusStatsHttpPort={metrics_port}")
        metrics = (f"statsProviderClass={PROMETHEUS}", *where)
        bookies = []
        for number in range(3):
            process = BookieProcess(
                directory / str(number),
                uri,
                "zkTimeout=30000",
                "autoRecoveryDaemonEnabled=false",
                *(web, metrics, ())[number],
            )
            bookies.append(running.enter_context(process).start())
        yield Cluster(zookeeper.servers, bookies, web_port, metrics_port)


@pytest.fixture
def shell(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs a command, as `bin/bookkeeper shell` does in a process of its own."""

    def run(*words: str, uri: str = cluster.uri, sets: tuple[str, ...] = ()) -> Result:
        capsys.readouterr()
        own = [word for each in (f"metadataServiceUri={uri}", *sets) for word in ("--set", each)]
        code = main(["shell", *own, *words])
        written = capsys.readouterr()
        return Result(code, written.out, written.err)

    return run
