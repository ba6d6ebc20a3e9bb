"""`interpulse export-metadata` and `interpulse import-metadata`: from a stopped standalone's directory into ZooKeeper.

The ledgers stay where they are: the bookie that serves them is started on the same directories, under the name that it had,
and its cookie is made here, because a bookie that has ledgers and none is refused. Exit codes: 0, or 1 with a line on stderr.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from bookie.server.registration import BookieIdentity, encode_cookie
from bookkeeper.ledger_metadata.paths import INSTANCE_ID, ROOT
from cli.data_place import default_data
from cli.initialize_cluster.main import with_chroot
from cli.metadata_copy.copy import BadCopy, BookieOfCopy, CopyTarget, MetadataCopy, read_copy, write_copy
from cli.serving.ready_file import write_whole
from cli.standalone.server import BOOKIE_ID
from metadata.sqlite_rows import FILE_NAME, LoadedRows, SqliteRows
from metadata.store import MetadataError
from metadata.zookeeper.connect_string import servers_of

SESSION_SECONDS = 30.0


def run_export(options: argparse.Namespace) -> int:
    """Refused while the standalone runs: its store is held."""
    directory = (Path(options.data_dir) if options.data_dir else default_data("standalone")).resolve()
    return _run(options.command, lambda: _export(directory, Path(options.file)))


def run_import(options: argparse.Namespace) -> int:
    """Refused when anything is there that says something else; after a failure, run it again."""
    directory = Path(options.data_dir).resolve() if options.data_dir else None
    return _run(options.command, lambda: _import(Path(options.file), servers_of(options.metadata_store), directory))


def _run(command: str, work: Callable[[], None]) -> int:
    try:
        work()
    except (BadCopy, MetadataError, OSError) as error:
        print(f"interpulse {command}: {error}", file=sys.stderr)
        return 1
    return 0


def _export(directory: Path, file: Path) -> None:
    metadata = directory / "metadata"
    if not (metadata / FILE_NAME).is_file():
        raise MetadataError(f"{metadata / FILE_NAME} is not there: --data-dir is the directory of a standalone")
    loaded = asyncio.run(_load(str(metadata)))
    copy = MetadataCopy({path: node.value for path, node in loaded.nodes}, loaded.counters, _bookie_in(directory))
    write_whole(file, "\n".join(write_copy(copy)))
    print(f"{file}: {len(copy.nodes)} nodes")
    if copy.bookie is None:
        print(f"the bookie's directories are not below {directory}: import-metadata makes no cookie for them")


async def _load(directory: str) -> LoadedRows:
    rows, loaded = await SqliteRows.open(directory)
    await rows.close()
    return loaded


def _bookie_in(directory: Path) -> BookieOfCopy | None:
    """None when the settings of the standalone had put them elsewhere."""
    journal, ledgers = directory / "bookkeeper" / "journal", directory / "bookkeeper" / "ledgers"
    return BookieOfCopy(BOOKIE_ID, str(journal), str(ledgers)) if journal.is_dir() and ledgers.is_dir() else None


def _import(file: Path, servers: str, directory: Path | None) -> None:
    copy = _read(file)
    bookie = copy.bookie if directory is None else _bookie_in(directory)
    if directory is not None and bookie is None:
        raise MetadataError(f"{directory}: no bookkeeper/journal and bookkeeper/ledgers below it")
    nodes = dict(copy.nodes)
    if bookie is not None:
        nodes |= _cookie(bookie, nodes.get(INSTANCE_ID, b"").decode())
    count = asyncio.run(_write(servers, MetadataCopy(nodes, copy.counters, bookie)))
    print(f"{count} nodes written, {len(nodes) - count} were there")
    _print_next_steps(servers, bookie, sorted(nodes))


def _read(file: Path) -> MetadataCopy:
    try:
        with file.open() as lines:
            return read_copy(lines)
    except (BadCopy, UnicodeDecodeError) as error:
        raise BadCopy(f"{file}: {error}") from error


async def _write(servers: str, copy: MetadataCopy) -> int:
    async with with_chroot(servers, SESSION_SECONDS) as store:
        return await CopyTarget(store).write(copy)


def _cookie(bookie: BookieOfCopy, instance_id: str) -> dict[str, bytes]:
    directories = (bookie.journal_directory,), (bookie.ledger_directory,)
    identity = BookieIdentity(bookie.bookie_id, "", 0, *directories, instance_id)
    return {f"{ROOT}/cookies": b"", f"{ROOT}/cookies/{bookie.bookie_id}": encode_cookie(identity)}


def _print_next_steps(servers: str, bookie: BookieOfCopy | None, paths: list[str]) -> None:
    prefix = "/admin/clusters/"
    clusters = [path.removeprefix(prefix) for path in paths if path.startswith(prefix) and path != f"{prefix}global"]
    if bookie is not None:
        print(
            f"the bookie: interpulse bookie --set metadataServiceUri=metadata-store:zk:{servers}{ROOT} "
            f"--set bookieId={bookie.bookie_id} --set journalDirectories={bookie.journal_directory} "
            f"--set ledgerDirectories={bookie.ledger_directory}"
        )
    print(f"brokers: metadataStoreUrl=zk:{servers} clusterName={','.join(clusters)}")
