"""Faults of directories: of a stopped standalone, copied for each fault, and of disks that are mounted for it.

No server runs while the doctor looks.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from benchmarks.doctor_faults.fault import Fault, Inject, Injected
from benchmarks.raw_client import RawClient, send_frame
from tests.clients.server_process import ServerProcess

TOPIC = "persistent://public/default/faults"
ENTRIES = 2_000
Damage = Callable[[Path], Path]
"""Damages a copy, and says which file or directory the doctor has to name."""


def stored(directory: Path, *, killed: bool) -> Path:
    """The data of a standalone that has served; `killed`: its journal holds what its entry logs do not."""
    with ServerProcess(directory) as server:
        with closing(RawClient(server.start().broker_url)) as client:
            client.producer(TOPIC)
            client.publish(send_frame(500, 1), 100, 20.0, ENTRIES)
        if killed:
            server.kill()
        else:
            server.stop()
    return directory / "data"


def faults(stopped: Path, killed: Path) -> list[Fault]:
    """`stopped` and `killed` are data directories that `stored` made."""

    def damaged(damage: Damage, base: Path = stopped) -> Inject:
        @contextmanager
        def inject(own: Path) -> Iterator[Injected]:
            data = own / "data"
            shutil.copytree(base, data)
            thing = damage(data)
            yield Injected(("--offline", "--data-dir", data), (thing,))

        return inject

    put_back = ("delete nothing", "decommissionbookie")
    return [
        Fault("control: a stopped standalone", _sound(stopped)),
        Fault("control: a standalone that was killed", _sound(killed)),
        Fault(
            "VERSION missing in the ledger directory",
            damaged(_no_version),
            "cookies-present",
            remedy=("mount the disk", *put_back),
        ),
        Fault(
            "VERSION missing in both directories",
            damaged(_no_versions),
            "cookies-present",
            remedy=("mount the disk", *put_back),
        ),
        Fault(
            "an empty disk mounted on the ledger directory", damaged(_emptied), "cookies-present", remedy=("mount the disk",)
        ),
        Fault(
            "directories of two bookies", damaged(_foreign), "cookies-agree", remedy=("journalDirectories", "mount each disk")
        ),
        Fault("VERSION empty", damaged(_blank_version), "cookies-agree", remedy=("put a good copy",)),
        Fault("VERSION of a later format", damaged(_later_version), "format-version", remedy=("run the version",)),
        Fault("entry log cut short", damaged(_cut_log), "stored-files", remedy=put_back),
        Fault("entry log with flipped bytes", damaged(_flipped_log), "stored-files", remedy=put_back),
        Fault("index missing", damaged(_no_index), "stored-files", remedy=put_back),
        Fault("checkpoint damaged", damaged(_flipped_checkpoint), "stored-files", remedy=put_back),
        Fault("journal missing", damaged(_no_journal, killed), "stored-files", remedy=put_back),
        Fault("journal with flipped bytes", damaged(_flipped_journal, killed), "stored-files", remedy=put_back),
        Fault("metadata.sqlite damaged", damaged(_flipped_metadata), "metadata-file", remedy=("backup", "delete nothing")),
        Fault("journal directory not mounted", _not_there(stopped), "directories-present", remedy=("mount the disk of",)),
        Fault("ledger directory read-only", _read_only(stopped), "directories-writable", remedy=("read-write",)),
        Fault("disk 97 % full", _full(stopped), "disk-free", remedy=("free or add room", "loses messages")),
        Fault("disk of the metadata full", _full_metadata(stopped), "disk-free", remedy=("free or add room", "loses messages")),
        Fault("disk out of inodes", _without_inodes, "disk-inodes", remedy=("inodes",)),
    ]


def _sound(base: Path) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        shutil.copytree(base, own / "data")
        yield Injected(("--offline", "--data-dir", own / "data"))

    return inject


# ---- Damage


def _journal(data: Path) -> Path:
    return data / "bookkeeper" / "journal"


def _ledgers(data: Path) -> Path:
    return data / "bookkeeper" / "ledgers"


def _no_version(data: Path) -> Path:
    (_ledgers(data) / "VERSION").unlink()
    return _ledgers(data)


def _no_versions(data: Path) -> Path:
    (_journal(data) / "VERSION").unlink()
    return _no_version(data)


def _emptied(data: Path) -> Path:
    shutil.rmtree(_ledgers(data))
    _ledgers(data).mkdir()
    return _ledgers(data)


def _foreign(data: Path) -> Path:
    file = _ledgers(data) / "VERSION"
    lines = file.read_text().splitlines()
    file.write_text("".join(f"secret={'0' * 32}\n" if line.startswith("secret=") else f"{line}\n" for line in lines))
    return _ledgers(data)


def _blank_version(data: Path) -> Path:
    (_journal(data) / "VERSION").write_text("")
    return _journal(data)


def _later_version(data: Path) -> Path:
    for directory in (_journal(data), _ledgers(data)):
        file = directory / "VERSION"
        file.write_text(file.read_text().replace("version=1", "version=2"))
    return _journal(data)


def _only(directory: Path, pattern: str) -> Path:
    """The first file of a kind that is not empty."""
    return next(path for path in sorted(directory.glob(pattern)) if path.stat().st_size)


def _cut_log(data: Path) -> Path:
    log = _only(_ledgers(data), "*.log")
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size // 2)
    return log


def _flip(path: Path, offset: int, count: int = 64) -> Path:
    with path.open("r+b") as file:
        file.seek(offset)
        found = file.read(count)
        file.seek(offset)
        file.write(bytes(each ^ 0xFF for each in found))
    return path


def _flipped_log(data: Path) -> Path:
    return _flip(_only(_ledgers(data), "*.log"), 8192)


def _no_index(data: Path) -> Path:
    index = _only(_ledgers(data), "*.index")
    index.unlink()
    return index


def _flipped_checkpoint(data: Path) -> Path:
    return _flip(_ledgers(data) / "checkpoint", 20, 8)


def _no_journal(data: Path) -> Path:
    files = sorted(_journal(data).glob("*.journal"))
    for file in files:
        file.unlink()
    return _journal(data)


def _flipped_journal(data: Path) -> Path:
    """Flips a byte in the middle of the acknowledged part: a torn end would be no damage."""
    return _flip(_only(_journal(data), "*.journal"), 64 * 1024, 4096)


def _flipped_metadata(data: Path) -> Path:
    return _flip(data / "metadata" / "metadata.sqlite", 0, 4096)


# ---- Directories and disks


def _not_there(base: Path) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        shutil.copytree(base, own / "data")
        conf, gone = own / "bookkeeper.conf", own / "gone" / "journal"
        conf.write_text(f"journalDirectories={gone}\nledgerDirectories={_ledgers(own / 'data')}\n")
        yield Injected(("--offline", "--data-dir", own, "--config", conf), (gone,))

    return inject


@contextmanager
def mounted(place: Path, *options: str) -> Iterator[Path]:
    """A small file system of its own, in memory. Needs the right to mount."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(place)], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True, capture_output=True)


def _read_only(base: Path) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        with mounted(own / "disk", "size=200m") as disk:
            shutil.copytree(base, disk / "data")
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True, capture_output=True)
            yield Injected(("--offline", "--data-dir", disk / "data"), (_journal(disk / "data"),))

    return inject


def _full(base: Path) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        with mounted(own / "disk", "size=200m") as disk:
            shutil.copytree(base, disk / "data")
            free = shutil.disk_usage(disk).free
            (disk / "somebody-elses").write_bytes(bytes(free - (6 << 20)))
            yield Injected(("--offline", "--data-dir", disk / "data"), (disk / "data",))

    return inject


def _full_metadata(base: Path) -> Inject:
    """They are on a disk of their own, and the rest has room."""

    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        shutil.copytree(base, own / "data")
        metadata = own / "data" / "metadata"
        files = {each.name: each.read_bytes() for each in metadata.iterdir()}
        with mounted(metadata, "size=64m") as disk:
            for name, content in files.items():
                (disk / name).write_bytes(content)
            (disk / "somebody-elses").write_bytes(bytes(shutil.disk_usage(disk).free))
            yield Injected(("--offline", "--data-dir", own / "data"), (metadata, "with the metadata"))

    return inject


@contextmanager
def _without_inodes(own: Path) -> Iterator[Injected]:
    with ExitStack() as ending:
        disk = ending.enter_context(mounted(own / "disk", "size=10m", "nr_inodes=100"))
        (disk / "data").mkdir()
        for number in range(97):
            (disk / "data" / str(number)).touch()
        yield Injected(("--offline", "--data-dir", disk / "data"), (disk / "data",))
