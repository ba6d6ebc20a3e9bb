"""Commands that read the disks of this configuration's bookie. They change nothing, and may run beside it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bookie import stored_files as files
from bookie.journal.files import SUFFIX, file_name
from bookie.journal.format_v1 import VERSION, LedgerFenced, MasterKeySet, Record
from bookie.settings import BookieSettings
from bookie.storage.log_file import log_name
from bookie.stored_files import Block, Damage
from bookie.stripes import stripe_settings
from cli.bookkeeper_cluster.formatting import entry_text
from cli.bookkeeper_shell.context import CommandFailed, Shell
from cli.bookkeeper_shell.options import Given, WrongUsage, ledger_id_in, whole_number
from cli.bookkeeper_shell.read_only_disk import ReadOnlyDisk
from wire.run import EntryRun

KINDS = {
    "txn": ("journal", "Journal"),
    "log": ("entrylog", "EntryLog/Ledger"),
    "idx": ("index", "Index"),
}
Wanted = Callable[[int, int, int], bool]
"""Whether to show an entry: of its ledger, its id, its offset."""


async def last_mark(shell: Shell, given: Given) -> int:
    for _, mark in await files.last_marks(ReadOnlyDisk(), shell.settings(BookieSettings)):
        name = file_name(mark.file_id)
        shell.say(f"LastLogMark : Journal Id - {mark.file_id}({name}), Pos - {mark.offset}")
    return 0


async def list_files_on_disc(shell: Shell, given: Given) -> int:
    kinds = [kind for kind in KINDS if given.has(kind)] or list(KINDS)
    for kind in kinds:
        name, title = KINDS[kind]
        shell.say(f"--------- Printing the list of {title} Files ---------")
        for path in await files.stored_files(ReadOnlyDisk(), shell.settings(BookieSettings), name):
            shell.say(str(_absolute(path)))
        shell.say("")
    return 0


def _absolute(path: str) -> Path:
    return Path(path).resolve()


async def read_journal(shell: Shell, given: Given) -> int:
    if len(given.arguments) != 1:
        raise WrongUsage("missing journal id or journal file name")
    file_id = _file_id(given.arguments[0], SUFFIX, 10)
    directory = _journal_directory(shell, given)
    shell.say(f"Scan journal {file_id} ({file_name(file_id)})\nJournal Version : {VERSION}")
    async for each in files.journal_records(ReadOnlyDisk(), directory, file_id):
        _say_record(shell, each.record, each.offset, with_data=given.has("m"))
    return 0


def _journal_directory(shell: Shell, given: Given) -> str:
    """CommandFailed when there are several, and none of them is named."""
    directories = [part.journal_directory for part in stripe_settings(shell.settings(BookieSettings))]
    if not given.has("dir"):
        if len(directories) > 1:
            raise CommandFailed(f"invalid or missing journal directory: -dir with one of {', '.join(directories)}")
        return directories[0]
    for directory in directories:
        if _absolute(directory) == _absolute(given.text("dir")):
            return directory
    raise CommandFailed(f"journal directory {given.text('dir')} is none of {', '.join(directories)}")


def _say_record(shell: Shell, record: Record, offset: int, *, with_data: bool) -> None:
    """`offset` is that of the frame: a frame is what is written, and read, as one."""
    match record:
        case MasterKeySet():
            key = record.master_key
            shell.say(f"--------- Lid={shell.ledger(record.ledger_id)}, ByteOffset={offset}, EntrySize={len(key)} ---------")
            shell.say(f"Type:           META\nMasterKey:      {key.hex()}\n")
        case LedgerFenced():
            shell.say(f"--------- Lid={shell.ledger(record.ledger_id)}, ByteOffset={offset}, EntrySize=0 ---------")
            shell.say("Type:           META\nFenced\n")
        case EntryRun():
            for entry_id, entry in files.entries_of(record):
                _say_entry(shell, record, entry_id, entry, offset, with_data=with_data)


def _say_entry(shell: Shell, run: EntryRun, entry_id: int, entry: bytes, offset: int, *, with_data: bool) -> None:
    """Prints an entry as FormatUtil.formatEntry does."""
    title = f"Lid={shell.ledger(run.ledger_id)}, Eid={entry_id}, ByteOffset={offset}, EntrySize={len(entry)}"
    shell.say(f"--------- {title} ---------")
    shell.say(f"Type:           DATA\nLastConfirmed:  {int.from_bytes(entry[16:24], signed=True)}")
    if with_data:
        shell.say(f"Data:\n\n{entry_text(entry[run.header_bytes :], shell.entry_format)}")
    shell.say("")


async def read_log(shell: Shell, given: Given) -> int:
    if len(given.arguments) != 1:
        raise WrongUsage("missing entry log id or entry log file name")
    log_id = _file_id(given.arguments[0], ".log", 10)
    name, wanted, what = log_name(log_id), *_wanted(given)
    shell.say(f"Scan entry log {log_id} ({name}){what}")
    count = damaged = 0
    async for found in files.log_blocks(ReadOnlyDisk(), _directory_of(shell, name), log_id):
        if isinstance(found, Damage):
            damaged += 1
            shell.warn(f"{name} at {found.offset}: damaged: {found.reason}")
            continue
        for entry_id, entry, offset in _entries(found):
            if wanted(found.run.ledger_id, entry_id, offset):
                count += 1
                _say_entry(shell, found.run, entry_id, entry, offset, with_data=given.has("m"))
    if what and not count:
        shell.say(f"Entry log {log_id} ({name}) has no entry{what}")
    return 255 if damaged else 0


def _wanted(given: Given) -> tuple[Wanted, str]:
    """Filter of the entries to show, and its description. WrongUsage."""
    if given.has("sp") or given.has("ep"):
        start, end = given.number("sp", 0), given.number("ep", 1 << 62)
        if start > end:
            raise WrongUsage("StartPosition of the range should be lesser than or equal to EndPosition")
        return lambda _, __, offset: start <= offset <= end, f" for PositionRange: {start} - {end}"
    if given.has("l"):
        ledger, entry = given.ledger_id("l"), given.number("e", -1, -1)
        text = f" for LedgerId {ledger}" + (f" for EntryId {entry}" if entry >= 0 else "")
        return lambda ledger_id, entry_id, _: ledger_id == ledger and entry in (-1, entry_id), text
    return lambda *_: True, ""


def _entries(block: Block) -> Iterator[tuple[int, bytes, int]]:
    """Id, stored bytes and the place in the log."""
    for (entry_id, entry), start in zip(files.entries_of(block.run), block.run.offsets, strict=False):
        yield entry_id, entry, block.offset + start


async def read_log_metadata(shell: Shell, given: Given) -> int:
    if len(given.arguments) != 1:
        raise WrongUsage("missing entry log id or entry log file name")
    log_id = _file_id(given.arguments[0], ".log", 16)
    name, disk = log_name(log_id), ReadOnlyDisk()
    directory = _directory_of(shell, name)
    checkpoint = await files.checkpoint_of(disk, directory)
    extent = next((each for each in checkpoint.logs if each.log_id == log_id), None)
    if extent is None:
        raise CommandFailed(f"{name} is not of the last checkpoint: it is being written, or will be removed")
    states = await files.ledger_states(disk, directory, checkpoint)
    live = {state.ledger_id for state in states if not state.is_deleted}
    sizes: dict[int, int] = {}
    for ledger_id, span in await files.index_of(disk, directory, extent):
        sizes[ledger_id] = sizes.get(ledger_id, 0) + span.size_bytes
    total, remaining = sum(sizes.values()), sum(size for ledger_id, size in sizes.items() if ledger_id in live)
    shell.say(f"Print entryLogMetadata of entrylog {log_id} ({name})")
    usage = remaining / total if total else 0.0
    shell.say(f"entryLogId: {log_id}, remaining size: {remaining}, total size: {total}, usage: {usage:g}")
    for ledger_id, size in sorted(sizes.items()):
        shell.say(f"--------- Lid={shell.ledger(ledger_id)}, TotalSizeOfEntriesOfLedger={size}  ---------")
    return 0


async def ledger(shell: Shell, given: Given) -> int:
    if len(given.arguments) != 1:
        raise WrongUsage("Specify ledger id to dump", 1)
    ledger_id, disk = ledger_id_in(given.arguments[0], "the ledger id"), ReadOnlyDisk()
    parts = stripe_settings(shell.settings(BookieSettings))
    directory = parts[ledger_id % len(parts)].ledger_directory
    checkpoint = await files.checkpoint_of(disk, directory)
    states = {state.ledger_id: state for state in await files.ledger_states(disk, directory, checkpoint)}
    state = states.get(ledger_id)
    if state is None or state.is_deleted:
        raise CommandFailed(f"ledger {ledger_id} is not in {directory}, as of the last checkpoint; the journal may have it")
    shell.say(f"===== LEDGER: {shell.ledger(ledger_id)} =====")
    if given.has("m"):
        shell.say(f"master key  : {state.master_key.hex()}\nisFenced    : {str(state.fenced).lower()}")
        shell.say(f"inLimbo     : {str(state.limbo).lower()}")
    for extent in checkpoint.logs:
        for owner, span in await files.index_of(disk, directory, extent):
            if owner == ledger_id:
                for entry_id in range(span.first_entry_id, span.last_entry_id + 1):
                    shell.say(f"entry {entry_id}\t:\t(log: {span.log_id}, pos: {span.offset})")
    return 0


async def local_consistency_check(shell: Shell, given: Given) -> int:
    shell.say("=== Performing local consistency check ===")
    errors = [error async for error in files.consistency_errors(ReadOnlyDisk(), shell.settings(BookieSettings))]
    if errors:
        shell.say("=== Check returned errors: ===")
        for error in errors:
            shell.warn(error)
        return 1
    shell.say("=== Check passed ===")
    return 0


def _file_id(text: str, suffix: str, base: int) -> int:
    """A number, or a file's name, which is one in hexadecimal. WrongUsage."""
    name = Path(text).name
    if name.endswith(suffix):
        if not re.fullmatch(r"[0-9a-fA-F]{1,16}", name.removesuffix(suffix)):
            raise WrongUsage(f"invalid file name {text}: expected hexadecimal digits and {suffix}")
        return int(name.removesuffix(suffix), 16)
    if base == 16 and re.fullmatch(r"[0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    return whole_number(text, f"the file: expected its id, or a name that ends in {suffix}; it")


def _directory_of(shell: Shell, name: str) -> str:
    """The ledger directory that has the file; the first one when none has, which says then what is there."""
    directories = [part.ledger_directory for part in stripe_settings(shell.settings(BookieSettings))]
    return next((directory for directory in directories if Path(directory, name).exists()), directories[0])
