"""`bin/pulsar export-metadata` and `import-metadata`: the file, what is refused, and a standalone's nodes on ZooKeeper."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.server.registration import BookieIdentity, check_cookie
from bookkeeper.ledger_metadata.ledger_ids import LedgerIds
from cli.metadata_copy.copy import BadCopy, BookieOfCopy, CopyTarget, MetadataCopy, read_copy, write_copy
from metadata.embedded import EmbeddedStore
from metadata.memory import MemoryStore, SharedTree
from metadata.store import MetadataError, MetadataStore, Put
from tests.metadata.conftest import OpenZooKeeper, open_on
from tests.metadata.test_store import TickingClock, run
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from tests.started_process import ROOT

BOOKIE = BookieOfCopy("127.0.0.1:3181", "/d/bookkeeper/journal", "/d/bookkeeper/ledgers")
SMALL = MetadataCopy({"/a": b"", "/a/b": b"\x00\xff"}, {"/a": 1}, BOOKIE)
LINES = [
    '{"magnetarMetadata":1,"bookie":{"id":"127.0.0.1:3181","journal":"/d/bookkeeper/journal","ledgers":"/d/bookkeeper/ledgers"}}',
    '{"path":"/a","value":""}',
    '{"path":"/a/b","value":"AP8="}',
    '{"counter":"/a","next":1}',
    '{"end":4}',
]
PATHS = st.lists(st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3)


def test_the_file_has_the_lines_of_format_1() -> None:
    assert list(write_copy(SMALL)) == LINES
    assert read_copy(LINES) == SMALL


@given(st.dictionaries(PATHS.map(lambda names: "/" + "/".join(names)), st.binary(max_size=40), max_size=6))
def test_a_written_copy_is_read_back_alike(nodes: dict[str, bytes]) -> None:
    copy = MetadataCopy(nodes, dict.fromkeys(nodes, 7), None)
    lines = list(write_copy(copy))
    assert read_copy(f"{each}\n" for each in lines) == copy
    assert all("\n" not in each for each in lines)


@pytest.mark.parametrize("kept", range(len(LINES)))
def test_a_file_that_was_cut_short_is_refused(kept: int) -> None:
    with pytest.raises(BadCopy, match=rf"it ends after line {kept}, cut short|line 1"):
        read_copy(LINES[:kept])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, '{"magnetarMetadata":2,"bookie":null}'),
        (1, "[]"),
        (2, '{"path":"a","value":""}'),
        (2, '{"path":"/a","value":"%"}'),
        (3, "{"),
        (4, '{"counter":"/a"}'),
        (5, '{"end":4}\n{"end":5}'),
    ],
)
def test_a_damaged_file_is_refused_with_the_line(line: int, text: str) -> None:
    with pytest.raises(BadCopy, match=rf"line {line + text.count(chr(10))}: .*export again"):
        read_copy([*LINES[: line - 1], *text.split("\n"), *LINES[line:]])


async def counted(store: MetadataStore, parent: str) -> int:
    (stat,) = await store.commit([Put(f"{parent}/ID-", b"", ephemeral=True, sequential=True)])
    assert stat is not None
    return int(stat.path.rpartition("-")[2])


MANY = MetadataCopy({"/a": b"", **{f"/a/{number}": b"x" * 3000 for number in range(450)}}, {"/a": 1700, "/b": 3}, None)


async def write_twice(store: MetadataStore) -> None:
    assert await CopyTarget(store).write(MANY) == 451
    assert sorted(await store.children("/a")) == sorted(str(number) for number in range(450))
    assert await counted(store, "/a") >= 1700
    assert await counted(store, "/b") >= 3
    assert await CopyTarget(store).write(MANY) == 0


async def refuse_another_value(store: MetadataStore) -> None:
    await store.put("/a/b", b"theirs")
    with pytest.raises(MetadataError, match=r"/a/b is there already.*Give --metadata-store a path of its own"):
        await CopyTarget(store).write(SMALL)
    assert await store.children("/") == ["a"]
    assert await store.children("/a") == ["b"]


def test_a_copy_may_be_written_again_and_never_over_another_cluster() -> None:
    async def scenario() -> None:
        for check in (write_twice, refuse_another_value):
            store = MemoryStore(TickingClock(), SharedTree())
            await check(store)
            await store.close()

    run(scenario())


def test_on_zookeeper_too(open_zookeeper: OpenZooKeeper) -> None:
    async def scenario() -> None:
        await write_twice(await open_zookeeper())

    run(scenario())


NODES = 8
"""/ledgers, INSTANCEID, idgen, /admin, clusters, standalone; and the cookie with its parent."""


def command(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([str(ROOT / "bin" / "pulsar"), *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_a_standalones_directory_moves_into_zookeeper(zookeeper: ZooKeeperProcess, tmp_path: Path) -> None:
    last_ids: list[int] = []

    async def fill() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "metadata"), TickingClock())
        await store.put("/ledgers/INSTANCEID", b"an-instance")
        await store.put("/admin/clusters/standalone", b"{}")
        ids = LedgerIds(store)
        last_ids.extend([await ids.take() for _ in range(5)])
        await ids.close()
        code, _, err = await asyncio.to_thread(command, "export-metadata", "--data-dir", str(tmp_path), "--file", str(file))
        await store.close()
        assert (code, "in use by another process" in err) == (1, True)

    file, url = tmp_path / "copy", f"zk:{zookeeper.servers}/{tmp_path.name}"
    for name in ("journal", "ledgers"):
        (tmp_path / "bookkeeper" / name).mkdir(parents=True)
    run(fill())
    code, out, err = command("export-metadata", "--data-dir", str(tmp_path), "--file", str(file))
    assert (code, err) == (0, "")
    for said in (f"{NODES} nodes written, 0 were there\n", f"0 nodes written, {NODES} were there\n"):
        code, out, err = command("import-metadata", "--file", str(file), "--metadata-store", url)
        assert (code, err) == (0, "")
        assert out.startswith(said)
        assert "--set bookieId=127.0.0.1:3181" in out
        assert out.endswith("clusterName=standalone\n")

    async def look() -> None:
        store = await open_on(url.removeprefix("zk:"))
        assert await LedgerIds(store).take() > max(last_ids)
        directories = [(str(tmp_path / "bookkeeper" / name),) for name in ("journal", "ledgers")]
        identity = BookieIdentity("127.0.0.1:3181", "h", 1, directories[0], directories[1], "an-instance")
        assert await check_cookie(store, "/ledgers", identity, in_use=True)

    run(look())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("export-metadata", "--data-dir", "{tmp}", "--file", "{tmp}/f"), "--data-dir is the directory of a standalone"),
        (("import-metadata", "--file", "{tmp}/absent", "-md", "zk:h"), "No such file"),
        (("import-metadata", "--file", "{tmp}/empty", "-md", "zk:h"), "it ends after line 0, cut short"),
        (("import-metadata", "--file", "{tmp}/empty", "-md", "rocksdb:/x"), "expected zk:host:port"),
    ],
)
def test_an_impossible_export_or_import_is_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    (tmp_path / "empty").touch()
    code, out, err = command(*(each.format(tmp=tmp_path) for each in arguments))
    assert (code, out) == (1, "")
    assert err.startswith(f"interpulse {arguments[0]}: ")
    assert says in err
    assert err.count("\n") == 1
