"""`bin/pulsar initialize-cluster-metadata`: the nodes that Apache Pulsar 4.0.8's command of that name leaves, and refusals."""

import json
import re
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cli.__main__ import main
from cli.initialize_cluster.metadata import ClusterMetadata, ClusterRefused, NewCluster
from metadata.embedded import EmbeddedStore
from metadata.memory import MemoryStore, SharedTree
from metadata.store import MetadataError, MetadataStore
from tests.metadata.conftest import open_on
from tests.metadata.test_store import TickingClock, run
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from tests.started_process import ROOT

CUT = {"boundaries": [*(f"0x{digit:x}0000000" for digit in range(16)), "0xffffffff"], "numBundles": 16}
TLS = {
    "tlsAllowInsecureConnection": False,
    "brokerClientTlsEnabledWithKeyStore": False,
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}
TENANT = {"allowedClusters": ["c1"], "adminRoles": []}
COORDINATOR_TOPIC = "/admin/partitioned-topics/pulsar/system/persistent/transaction_coordinator_assign"
APACHES: dict[str, Any] = {
    "/admin/clusters/c1": {
        "serviceUrl": "http://h:8080",
        "brokerServiceUrl": "pulsar://h:6650",
        "brokerClientTlsEnabled": False,
        **TLS,
    },
    "/admin/clusters/global": {"brokerClientTlsEnabled": False, **TLS},
    COORDINATOR_TOPIC: {"partitions": 16, "deleted": False},
    "/admin/policies/public": TENANT,
    "/admin/policies/pulsar": TENANT,
    "/bookies": {},
}
NAMESPACES = ("/admin/policies/public/default", "/admin/policies/pulsar/system")
C1 = NewCluster(
    "c1", "http://h:8080", broker_service_url="pulsar://h:6650", ledgers_servers="h:2181", ledgers_path="/x/ledgers"
)


async def initialise(store: MetadataStore, cluster: NewCluster = C1) -> list[str]:
    metadata = ClusterMetadata(store, store, Random(1))
    await metadata.initialise(cluster)
    return metadata.done


async def tree_of(store: MetadataStore, path: str = "/") -> dict[str, tuple[bytes, int]]:
    """Values and versions by path."""
    found = await store.get(path)
    tree = {} if found is None or path == "/" else {path: (found.value, found.stat.version)}
    for name in await store.children(path):
        tree |= await tree_of(store, f"{path.rstrip('/')}/{name}")
    return tree


async def check_the_nodes(store: MetadataStore) -> None:
    values = {path: value for path, (value, _) in (await tree_of(store)).items()}
    assert {path: json.loads(values[path]) for path in APACHES} == APACHES
    for namespace in NAMESPACES:
        policies = json.loads(values[namespace])
        assert (policies["bundles"], policies["replication_clusters"]) == (CUT, ["c1"])
    assert {"/ledgers/available", "/ledgers/available/readonly"} < values.keys()
    assert re.fullmatch(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", values["/ledgers/INSTANCEID"])
    assert values["/pulsar/functions"].startswith(b'1\nBKDL\n{"1":{"str":"')
    assert "/admin/local-policies" not in values  # a cluster's own, and perhaps not of this store: brokers make it


def on(store: Callable[[], Awaitable[MetadataStore]], work: Callable[[MetadataStore], Awaitable[None]]) -> None:
    async def scenario() -> None:
        opened = await store()
        try:
            await work(opened)
        finally:
            await opened.close()

    run(scenario())


async def in_memory() -> MetadataStore:
    return MemoryStore(TickingClock(), SharedTree())


def test_a_second_run_changes_nothing_and_another_cluster_is_added(tmp_path: Path) -> None:
    async def work(store: MetadataStore) -> None:
        assert "made /admin/clusters/c1" in await initialise(store)
        await check_the_nodes(store)
        before = await tree_of(store)
        assert await initialise(store) == []
        assert await tree_of(store) == before
        done = await initialise(store, NewCluster("c2", "http://i:8080", coordinator_count=32))
        changed = {
            f"changed {path}" for path in (*NAMESPACES, "/admin/policies/public", "/admin/policies/pulsar", COORDINATOR_TOPIC)
        }
        assert set(done) == {"made /admin/clusters/c2", *changed}
        assert json.loads((await tree_of(store))[NAMESPACES[0]][0])["replication_clusters"] == ["c1", "c2"]
        assert await initialise(store, NewCluster("c2", "http://i:8080", coordinator_count=8)) == []

    on(in_memory, work)
    on(lambda: EmbeddedStore.open(str(tmp_path / "metadata"), TickingClock()), work)


def test_an_existing_node_with_other_content_is_kept_and_reported() -> None:
    async def work(store: MetadataStore) -> None:
        await initialise(store)
        (kept,) = await initialise(store, NewCluster("c1", "http://elsewhere:8080"))
        assert kept.startswith("kept /admin/clusters/c1, which says something else")
        await check_the_nodes(store)
        await store.put("/admin/policies/public", b"{")
        with pytest.raises(MetadataError, match="/admin/policies/public: not JSON"):
            await initialise(store)

    on(in_memory, work)


def test_metadata_that_clusters_share_goes_into_the_configuration_store() -> None:
    async def work(local: MetadataStore) -> None:
        shared = await in_memory()
        await ClusterMetadata(local, shared, Random(1)).initialise(C1)
        assert sorted(await local.children("/")) == ["bookies", "ledgers"]
        assert sorted(await shared.children("/")) == ["admin", "pulsar"]
        await shared.close()

    on(in_memory, work)


def test_an_existing_bookkeeper_cluster_is_not_laid_out_again() -> None:
    async def work(store: MetadataStore) -> None:
        await initialise(store, NewCluster("c1", "http://h:8080", has_ledgers_elsewhere=True))
        assert "ledgers" not in await store.children("/")

    on(in_memory, work)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "a/b"}, "--cluster 'a/b': a name has letters, digits"),
        ({"name": "global"}, "'global' is Apache's own"),
        ({"web_service_url": "h:8080"}, r"--web-service-url h:8080: expected http://host:port, such as http://h:8080"),
        ({"web_service_url": "https://h:8080,i:8080"}, "expected http://host:port, such as http://h:8080,i:8080"),
        ({"broker_service_url": "h:6650"}, "--broker-service-url h:6650: expected pulsar://host:port"),
        ({"broker_service_url": "pulsar://"}, "--broker-service-url pulsar://: expected pulsar://host:port"),
        ({"broker_service_url_tls": "pulsar://h:6651"}, r"--broker-service-url-tls .* such as pulsar\+ssl://h:6651"),
        ({"web_service_url_tls": "http://h:8443"}, "--web-service-url-tls .* such as https://h:8443"),
        ({"bundle_count": 0}, "--default-namespace-bundle-number 0: expected 1 to"),
        ({"coordinator_count": 0}, "--initial-num-transaction-coordinators 0: at least 1"),
        ({"proxy_url": "pulsar://p:6650"}, "--proxy-url and --proxy-protocol go together"),
    ],
)
def test_cluster_options_that_would_not_work_are_refused_with_a_remedy(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ClusterRefused, match=says):
        NewCluster(**{"name": "c1", "web_service_url": "http://h:8080,i:8080"} | options)


def test_coordinators_of_transactions_are_added_to_a_cluster_that_has_none_and_never_taken_away() -> None:
    async def work(store: MetadataStore) -> None:
        metadata = ClusterMetadata(store, store, Random(1))
        for count, there in ((4, 4), (2, 4), (6, 6)):
            await metadata.initialise_coordinators("c1", count)
            nodes = await tree_of(store)
            assert json.loads(nodes[COORDINATOR_TOPIC][0])["partitions"] == there
        assert json.loads(nodes["/admin/policies/pulsar"][0]) == TENANT
        assert json.loads(nodes["/admin/policies/pulsar/system"][0])["replication_clusters"] == ["c1"]
        assert "/admin/policies/public" not in nodes
        await initialise(store)
        assert json.loads((await tree_of(store))[COORDINATOR_TOPIC][0])["partitions"] == 16

    on(in_memory, work)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--initial-num-transaction-coordinators", "0"), "--initial-num-transaction-coordinators 0: at least 1"),
        (("--zookeeper-session-timeout-ms", "9"), "--zookeeper-session-timeout-ms 9: at least 1000"),
        (("-cmscp", "x"), "--configuration-metadata-store-config-path: nothing is configured by file here: leave it out"),
    ],
)
def test_the_command_for_coordinators_says_in_one_line_what_is_wrong(
    options: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "initialize-transaction-coordinator-metadata"
    assert main([name, "-c", "c1", "-cs", "zk:h", *options]) == 1
    assert capsys.readouterr() == ("", f"interpulse {name}: {says}\n")


def command(*arguments: str, cluster: Sequence[str] = ("--cluster", "c1", "-uw", "http://h:8080")) -> tuple[int, str, str]:
    words = [str(ROOT / "bin" / "pulsar"), "initialize-cluster-metadata", *cluster, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_on_zookeeper_with_a_chroot_that_is_not_there(
    zookeeper: ZooKeeperProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"zk:{zookeeper.servers}/{tmp_path.name}/init"
    options = ("--metadata-store", where, "--configuration-metadata-store", where, "--broker-service-url", "pulsar://h:6650")
    code, out, err = command(*options, "--initial-num-stream-storage-containers", "16")
    assert (code, err) == (0, "")
    assert out.startswith("--initial-num-stream-storage-containers: without effect")
    assert out.endswith("cluster c1 is set up\n")
    code, out, err = command("-zk", where.removeprefix("zk:"), "-cs", where.removeprefix("zk:"), "-ub", "pulsar://h:6650")
    assert (code, out, err) == (0, "cluster c1 was set up before, nothing to do\n", "")

    async def look() -> None:
        store = await open_on(where.removeprefix("zk:"))
        await check_the_nodes(store)
        found = await store.get("/pulsar/functions")
        assert found is not None
        assert f'"2":{{"str":"/{tmp_path.name}/init/ledgers"}}' in found.value.decode()

    run(look())
    name = "initialize-transaction-coordinator-metadata"
    assert main([name, "-c", "c1", "-cs", where, "--initial-num-transaction-coordinators", "20"]) == 0
    assert capsys.readouterr().out == f"changed {COORDINATOR_TOPIC}\ncluster c1 has its transaction coordinators\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "where ZooKeeper is, is missing: add --metadata-store zk:host:2181"),
        (("-md", "rocksdb:///data"), "is not a ZooKeeper server; expected zk:host:port"),
        (("-md", "zk:h", "-zk", "h"), "--metadata-store and --zookeeper say the same"),
        (("-md", "zk:h", "-cs", "h", "-cms", "zk:h"), "--configuration-metadata-store and --configuration-store say the same"),
        (("-md", "zk:h", "--existing-bk-metadata-service-uri", "etcd:h"), "metadataServiceUri 'etcd:h': expected zk"),
        (("-md", "zk:127.0.0.1:1", "--zookeeper-session-timeout-ms", "1000"), "no answer from 127.0.0.1:1 in 1 s"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(options: tuple[str, ...], says: str) -> None:
    code, out, err = command(*options)
    assert (code, out) == (1, "")
    assert err.startswith("interpulse initialize-cluster-metadata: ")
    assert says in err
    assert err.count("\n") == 1
