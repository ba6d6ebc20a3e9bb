"""Files on a bookie's disks, read without a bookie: marks, lists of files, journal frames, blocks of entry logs, the index.

For tools, also beside the bookie that is running there; nothing is changed. Directories of Apache's bookie are refused:
their formats are others.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from bookie.errors import JournalDamaged, StorageDamaged, WrongDirectory
from bookie.journal import format_v1 as journal_form
from bookie.journal.files import SUFFIX, file_name, journal_ids
from bookie.journal.format_v1 import JournalMark, Record
from bookie.ledgers import LedgerState
from bookie.settings import BookieSettings
from bookie.start.cookie import VERSION_FILE, Cookie, decode_cookie
from bookie.storage import files_v1 as form
from bookie.storage.block_v1 import BLOCK_HEADER_BYTES, LOG_ALIGNMENT, DamagedBlock, block_size, decode_block
from bookie.storage.files_v1 import Checkpoint, LogExtent
from bookie.storage.log_file import index_name, log_name
from bookie.storage.small_files import read_file
from bookie.storage.span import Span
from bookie.storage.storage import CHECKPOINT, ledgers_name
from bookie.stripes import stripe_settings
from ports.disk.disk import Disk, File
from wire.run import EntryRun

LANE = "tools"
SUFFIXES = {"journal": SUFFIX, "entrylog": ".log", "index": ".index"}
"""File name endings by kind of file; the kinds have the names of Apache's HTTP."""
_APACHES = "current"


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """A record, and where in its file the frame is that holds it."""

    offset: int
    sequence: int
    record: Record


@dataclass(frozen=True, slots=True)
class Block:
    """A sound block of an entry log."""

    offset: int
    size_bytes: int
    run: EntryRun


@dataclass(frozen=True, slots=True)
class Damage:
    """A place in an entry log where no sound block is, and none is due to begin."""

    offset: int
    reason: str


async def cookie_of(disk: Disk, directory: str) -> Cookie:
    """WrongDirectory for one that is not a bookie's of ours."""
    path = f"{directory}/{VERSION_FILE}"
    try:
        return decode_cookie(await read_file(disk, path), path)
    except FileNotFoundError:
        if await disk.exists(f"{directory}/{_APACHES}"):
            raise WrongDirectory(
                f"{directory} holds {_APACHES}/: it is of Apache's bookie, whose files are of another format. Apache's own "
                "`bookkeeper shell` reads them"
            ) from None
        raise WrongDirectory(
            f"{path} is not there: no bookie has used this directory. Are journalDirectories and ledgerDirectories right?"
        ) from None


async def stored_files(disk: Disk, settings: BookieSettings, kind: str) -> list[str]:
    """Paths of the files of one kind (SUFFIXES), in the order of their names in each directory. WrongDirectory, OSError."""
    found = []
    for part in stripe_settings(settings):
        directory = part.journal_directory if kind == "journal" else part.ledger_directory
        await cookie_of(disk, directory)
        found += [f"{directory}/{name}" for name in await disk.list_directory(directory) if name.endswith(SUFFIXES[kind])]
    return found


async def last_marks(disk: Disk, settings: BookieSettings) -> list[tuple[str, JournalMark]]:
    """Last mark of each journal directory, up to which entry logs have it. WrongDirectory, StorageDamaged, OSError."""
    return [
        (part.journal_directory, (await checkpoint_of(disk, part.ledger_directory)).mark) for part in stripe_settings(settings)
    ]


async def checkpoint_of(disk: Disk, directory: str) -> Checkpoint:
    """WrongDirectory, StorageDamaged, OSError."""
    await cookie_of(disk, directory)
    path = f"{directory}/{CHECKPOINT}"
    try:
        return form.decode_checkpoint(await read_file(disk, path))
    except FileNotFoundError:
        raise WrongDirectory(f"{path} is not there: the bookie has not been started yet") from None
    except form.DamagedFile as error:
        raise StorageDamaged(f"{path} is damaged: {error}") from error


async def ledger_states(disk: Disk, directory: str, checkpoint: Checkpoint) -> list[LedgerState]:
    """Ledger states as of the checkpoint. StorageDamaged, OSError."""
    if not checkpoint.ledgers_file_id:
        return []
    path = f"{directory}/{ledgers_name(checkpoint.ledgers_file_id)}"
    try:
        return form.decode_ledgers(await read_file(disk, path, checkpoint.ledgers_bytes), checkpoint.ledgers_file_id)
    except (FileNotFoundError, form.DamagedFile) as error:
        raise StorageDamaged(f"{path} cannot be read: {error}") from error


async def index_of(disk: Disk, directory: str, extent: LogExtent) -> Sequence[tuple[int, Span]]:
    """The ledger and the span of each block of a log. StorageDamaged, OSError."""
    path = f"{directory}/{index_name(extent.log_id)}"
    try:
        return list(form.decode_index(await read_file(disk, path, extent.index_bytes), extent.log_id))
    except (FileNotFoundError, form.DamagedFile) as error:
        raise StorageDamaged(f"{path} cannot be read: {error}") from error


async def journal_records(disk: Disk, directory: str, file_id: int) -> AsyncIterator[JournalRecord]:
    """Records of one file from its beginning, also those before the checkpoint. JournalDamaged, WrongDirectory, OSError.

    It ends where frames of this file end: behind them is what a file held that was recycled, or nothing.
    """
    cookie = await cookie_of(disk, directory)
    if file_id not in await journal_ids(disk, directory):
        raise WrongDirectory(f"{directory} has no journal file {file_name(file_id)}")
    key = journal_form.file_key(cookie.secret, file_id)
    file = await disk.open(f"{directory}/{file_name(file_id)}", lane=LANE)
    try:
        header = journal_form.decode_file_header(await file.read(0, journal_form.FILE_HEADER_BYTES), file_id, key)
        if header is None or header.first_sequence == journal_form.NO_FRAME_YET:
            return
        offset = header.alignment
        while True:
            frame = journal_form.decode_frame_header(await file.read(offset, journal_form.FRAME_HEADER_BYTES), 0, key)
            if frame is None:
                return
            size = frame.size_bytes - journal_form.FRAME_HEADER_BYTES
            body = await file.read(offset + journal_form.FRAME_HEADER_BYTES, size)
            records = journal_form.decode_body(frame, memoryview(body)) if len(body) == size else None
            if records is None:
                return  # the torn end, or a write that is under way
            for record in records:
                yield JournalRecord(offset, frame.sequence, record)
            offset += journal_form.aligned(frame.size_bytes, header.alignment)
    except journal_form.BadRecord as error:
        raise JournalDamaged(f"{file.path}: {error}") from error
    finally:
        await file.close()


async def log_blocks(disk: Disk, directory: str, log_id: int, end: int | None = None) -> AsyncIterator[Block | Damage]:
    """Every block of an entry log up to `end` (None: all there is), its checksums verified. WrongDirectory, OSError."""
    await cookie_of(disk, directory)
    try:
        file = await disk.open(f"{directory}/{log_name(log_id)}", lane=LANE)
    except FileNotFoundError:
        raise WrongDirectory(f"{directory} has no entry log {log_name(log_id)}") from None
    try:
        offset, end = LOG_ALIGNMENT, file.size() if end is None else end
        while offset < end:
            found = await _block_at(file, offset, end)
            if isinstance(found, Block):
                offset += found.size_bytes
                yield found
                continue
            if found is not None:
                yield found
            offset = (offset // LOG_ALIGNMENT + 1) * LOG_ALIGNMENT  # a flush begins there, or nothing does
    finally:
        await file.close()


async def _block_at(file: File, offset: int, end: int) -> Block | Damage | None:
    """None: the room up to where the next flush begins."""
    try:
        size = block_size(await file.read(offset, BLOCK_HEADER_BYTES))
        return Block(offset, size, decode_block(await file.read(offset, min(size, end - offset)), check_data=True))
    except DamagedBlock as error:
        rest = await file.read(offset, -offset % LOG_ALIGNMENT)
        is_room = bool(offset % LOG_ALIGNMENT) and not any(rest)
        return None if is_room else Damage(offset, str(error))


async def consistency_errors(disk: Disk, settings: BookieSettings) -> AsyncIterator[str]:
    """Each place where index, entry logs and ledger states do not agree, or a checksum is wrong. BookieStartError, OSError."""
    for part in stripe_settings(settings):
        directory = part.ledger_directory
        checkpoint = await checkpoint_of(disk, directory)
        await ledger_states(disk, directory, checkpoint)
        for extent in checkpoint.logs:
            async for error in _log_errors(disk, directory, extent):
                yield error


async def _log_errors(disk: Disk, directory: str, extent: LogExtent) -> AsyncIterator[str]:
    try:
        indexed = {span.offset: (ledger_id, span) for ledger_id, span in await index_of(disk, directory, extent)}
    except StorageDamaged as error:
        yield str(error)
        indexed = {}
    path = f"{directory}/{log_name(extent.log_id)}"
    async for found in log_blocks(disk, directory, extent.log_id, extent.log_bytes):
        if isinstance(found, Damage):
            yield f"{path} at {found.offset}: {found.reason}"
        else:
            ledger_id, span = indexed.pop(found.offset, (found.run.ledger_id, None))
            if ledger_id != found.run.ledger_id or (span and not _holds(found.run, span)):
                yield f"{path} at {found.offset}: holds other entries than the index says, ledger {ledger_id}"
    for ledger_id, span in indexed.values():
        yield f"Ledger {ledger_id}, entries {span.first_entry_id} to {span.last_entry_id}: not at {span.offset} of {path}"


def _holds(run: EntryRun, span: Span) -> bool:
    return run.first_entry_id <= span.first_entry_id and span.last_entry_id <= run.last_entry_id


def entries_of(record: Record) -> Iterator[tuple[int, bytes]]:
    """The id and the stored bytes of each entry of a run."""
    if isinstance(record, EntryRun):
        for index in range(record.count):
            start, end = record.offsets[index], record.offsets[index + 1]
            yield record.first_entry_id + index, bytes(memoryview(record.buffer)[start:end])
