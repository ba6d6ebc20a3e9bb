"""The shell reads what a bookie has left on its disks, changes nothing there, and refuses what is not a bookie's of ours."""

import asyncio
import hashlib
import io
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bookie.bookie import Bookie
from bookie.settings import BookieSettings
from bookie.striped_bookie import make_bookie
from cli.bookkeeper_shell.__main__ import main
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from tests.bookie.runs import KEY, sealed

Run = Callable[..., tuple[int, str, str]]


def settings_of(path: Path, stripes: int = 1) -> BookieSettings:
    directories = [f"{path}/{index}" for index in range(stripes)]
    return BookieSettings(tuple(f"{each}/journal" for each in directories), tuple(f"{each}/ledgers" for each in directories))


def fill(path: Path, work: Callable[[Bookie], Awaitable[None]], stripes: int = 1) -> None:
    """A bookie on the directories, until `work` is done; stopped, so that all of it is in the entry logs."""

    async def run() -> None:
        disk = RealDisk()
        bookie = make_bookie(disk, settings_of(path, stripes), RealClock(), RealRng())
        try:
            await bookie.start()
            await work(bookie)  # type: ignore[arg-type]  # a striped one takes the same calls
            await bookie.stop()
        finally:
            disk.close()

    asyncio.run(run())


async def two_ledgers(bookie: Bookie) -> None:
    await bookie.add(sealed(7, 0, 3, 20), KEY)
    await bookie.add(sealed(8, 0, 2, 20), KEY)
    await bookie.fence(8, KEY)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the bookie in `tmp_path`: its exit code and what it wrote."""

    def run(*words: str, stripes: int = 1) -> tuple[int, str, str]:
        settings = settings_of(tmp_path, stripes)
        sets = [
            f"journalDirectories={','.join(settings.journal_directories)}",
            f"ledgerDirectories={','.join(settings.ledger_directories)}",
        ]
        capsys.readouterr()
        code = main(["shell", *(word for each in sets for word in ("--set", each)), *words])
        written = capsys.readouterr()
        return code, written.out, written.err

    return run


def content(path: Path) -> dict[str, str]:
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in path.rglob("*") if file.is_file()}


def test_a_journal_is_read_as_it_was_written(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers)
    code, out, _ = shell("readjournal", "-m", "1")
    assert code == 0
    assert out.startswith("Scan journal 1 (0000000000000001.journal)\nJournal Version : 1\n")
    entries = re.findall(r"--------- Lid=(\d+), Eid=(\d+), ByteOffset=(\d+), EntrySize=(\d+) ---------", out)
    assert [(ledger, entry, size) for ledger, entry, _, size in entries] == [
        ("7", "0", "56"),
        ("7", "1", "56"),
        ("7", "2", "56"),
        ("8", "0", "56"),
        ("8", "1", "56"),
    ]
    assert out.count(f"MasterKey:      {KEY.hex()}") == 2
    assert out.count("Type:           META\nFenced") == 1
    assert "Lid=8, ByteOffset=" in out.rpartition("Fenced")[0].splitlines()[-2]
    by_name = shell("readjournal", f"{tmp_path}/0/journal/0000000000000001.journal", "-m")
    assert by_name == (code, out, "")


def test_a_torn_journal_is_read_up_to_where_it_is_torn(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers)
    path = tmp_path / "0/journal/0000000000000001.journal"
    data = bytearray(path.read_bytes())
    last = data.rindex(b"MGJF")
    data[last + 50] ^= 1
    path.write_bytes(data)
    code, out, _ = shell("readjournal", "1")
    assert code == 0
    assert "Lid=7" in out
    assert "Fenced" not in out


def test_an_entry_log_is_read_and_filtered(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers)
    code, out, _ = shell("readlog", "1")
    found = re.findall(r"Lid=(\d+), Eid=(\d+), ByteOffset=(\d+)", out)
    assert code == 0
    assert [(ledger, entry) for ledger, entry, _ in found] == [("7", "0"), ("7", "1"), ("7", "2"), ("8", "0"), ("8", "1")]
    log = (tmp_path / "0/ledgers/00000001.log").read_bytes()
    for ledger, entry, offset in found:
        assert log[int(offset) :][:16] == int(ledger).to_bytes(8) + int(entry).to_bytes(8)
    assert shell("readlog", "-l", "7", "-e", "1", "00000001.log")[1].count("Lid=") == 1
    start = found[3][2]
    assert re.findall(r"Lid=(\d+), Eid=(\d+)", shell("readlog", "-sp", start, "-ep", start, "1")[1]) == [("8", "0")]
    assert "has no entry for LedgerId 9" in shell("readlog", "-l", "9", "1")[1]


def test_the_contents_of_an_entry_log_and_a_ledger_are_told_from_the_index(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers)
    code, out, _ = shell("readlogmetadata", "1")
    assert code == 0
    assert re.search(r"entryLogId: 1, remaining size: (\d+), total size: \1, usage: 1\n", out)
    assert re.findall(r"Lid=(\d+), TotalSizeOfEntriesOfLedger=(\d+)", out) == [("7", "224"), ("8", "164")]
    code, out, _ = shell("ledger", "-m", "8")
    assert (code, out.splitlines()[:4]) == (
        0,
        ["===== LEDGER: 8 =====", f"master key  : {KEY.hex()}", "isFenced    : true", "inLimbo     : false"],
    )
    assert [line.split()[1] for line in out.splitlines()[4:]] == ["0", "1"]
    code, _, error = shell("ledger", "9")
    assert (code, "ledger 9 is not in" in error) == (1, True)


def test_marks_and_files_of_all_directories_are_listed(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers, stripes=2)
    code, out, _ = shell("lastmark", stripes=2)
    assert code == 0
    assert len(re.findall(r"LastLogMark : Journal Id - 1\(0000000000000001\.journal\), Pos - \d+", out)) == 2
    code, out, _ = shell("listfilesondisc", "-log", stripes=2)
    assert [line for line in out.splitlines() if line.startswith("/")] == [
        f"{tmp_path}/{index}/ledgers/00000001.log" for index in (0, 1)
    ]
    assert "Journal Files" not in out
    assert shell("readjournal", "1", stripes=2)[0] == 255
    assert "Lid=7" in shell("readjournal", "-dir", f"{tmp_path}/1/journal", "1", stripes=2)[1]


def test_damage_in_log_or_index_fails_the_consistency_check_and_is_named(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers)
    assert shell("localconsistencycheck") == (
        0,
        "=== Performing local consistency check ===\n=== Check passed ===\n",
        "",
    )
    for name in ("00000001.log", "00000001.index", "checkpoint"):
        path = tmp_path / "0/ledgers" / name
        sound = path.read_bytes()
        path.write_bytes(sound[:-1] + bytes((sound[-1] ^ 1,)) if name != "00000001.log" else _flipped(sound))
        code, out, error = shell("localconsistencycheck")
        assert code == 1
        assert name in error
        assert "Check passed" not in out
        path.write_bytes(sound)


def _flipped(log: bytes) -> bytes:
    at = log.rindex(b"MGEB") + 80
    return log[:at] + bytes((log[at] ^ 1,)) + log[at + 1 :]


def test_reading_changes_nothing(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers)
    before = content(tmp_path)
    for words in (
        ("lastmark",),
        ("readjournal", "1"),
        ("readlog", "1"),
        ("readlogmetadata", "1"),
        ("ledger", "7"),
        ("listfilesondisc",),
        ("localconsistencycheck",),
    ):
        assert shell(*words)[0] == 0
    assert content(tmp_path) == before


@pytest.mark.parametrize("words", [("lastmark",), ("readjournal", "1"), ("readlog", "1"), ("localconsistencycheck",)])
def test_directories_of_apaches_bookie_and_of_nobodys_are_refused(tmp_path: Path, shell: Run, words: tuple[str, ...]) -> None:
    code, _, error = shell(*words)
    assert code != 0
    assert "no bookie has used this directory" in error
    for kind in ("journal", "ledgers"):
        (tmp_path / "0" / kind / "current").mkdir(parents=True)
    code, _, error = shell(*words)
    assert code != 0
    assert "Apache's bookie" in error


def test_a_file_that_is_not_there_is_named(tmp_path: Path, shell: Run) -> None:
    fill(tmp_path, two_ledgers)
    for words, told in (
        (("readjournal", "77"), "no journal file 000000000000004d.journal"),
        (("readlog", "77"), "no entry log 0000004d.log"),
        (("readlog", "x.txt"), "expected its id, or a name that ends in .log"),
        (("readlogmetadata", "4d"), "0000004d.log is not of the last checkpoint"),
        (("readjournal", "-dir", "/elsewhere", "1"), "is none of"),
    ):
        code, _, error = shell(*words)
        assert (code, told in error) == (255, True), error


def test_formatting_asks_and_touches_no_directory_that_is_not_a_bookies(
    tmp_path: Path, shell: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, two_ledgers)
    before = content(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert shell("bookieformat")[0] == 1  # no answer is a no
    code, _, error = shell("bookieformat", "-n")
    assert (code, "with -f only" in error) == (1, True)
    assert content(tmp_path) == before
    version = tmp_path / "0/journal/VERSION"
    stamp = version.read_bytes()
    version.unlink()
    code, _, error = shell("bookieformat", "-n", "-f")
    assert (code, "it is no bookie's" in error) == (1, True)
    version.write_bytes(stamp)
    assert content(tmp_path) == before
    assert shell("bookieformat", "-n", "-f")[0] == 0
    assert content(tmp_path) == {}
    assert (tmp_path / "0/ledgers").is_dir()
