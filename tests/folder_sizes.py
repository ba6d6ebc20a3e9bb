"""Sizes of the product's folders: Python files, lines, floors of folders below. `python -m tests.folder_sizes` prints them."""

import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = (
    "benchmarks",
    "bookie",
    "bookkeeper",
    "broker",
    "cli",
    "handlers",
    "interpulse",
    "managed_ledger",
    "metadata",
    "pipeline",
    "ports",
    "simulation",
    "wire",
)
FILES_MAX = 15
LARGE_FOLDERS = {"wire/kernels": 26}
"""Folders with more files, and how many each has. The kernels are one room: they are compiled together."""


class FolderSize(NamedTuple):
    """Size of one folder, `__init__.py` apart. `floors` counts the levels of folders below."""

    files: int
    lines: int
    floors: int


def folder_sizes() -> dict[str, FolderSize]:
    """Sizes by folder, of files that git tracks."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [
        Path(each) for each in listed if each.startswith(tuple(f"{top}/" for top in PRODUCT)) and "/generated/" not in each
    ]
    folders = sorted({folder for path in paths for folder in path.parents if folder != Path()})
    sizes = {}
    for folder in folders:
        own = [path for path in paths if path.parent == folder and path.name != "__init__.py"]
        lines = sum((ROOT / path).read_text().count("\n") for path in own)
        floors = max(len(path.parent.relative_to(folder).parts) for path in paths if path.is_relative_to(folder))
        sizes[str(folder)] = FolderSize(len(own), lines, floors)
    return sizes


def table() -> str:
    """Sizes of all folders as a Markdown table, with their sum."""
    sizes = folder_sizes()
    rows = ["| folder | files | lines | floors |", "| --- | --- | --- | --- |"]
    rows += [f"| `{folder}` | {size.files} | {size.lines} | {size.floors} |" for folder, size in sizes.items()]
    files, lines = sum(size.files for size in sizes.values()), sum(size.lines for size in sizes.values())
    return "\n".join([*rows, f"| all | {files} | {lines} | |"])


if __name__ == "__main__":
    print(table())
