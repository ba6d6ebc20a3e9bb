"""The file of `--json-ready`: written when a server is ready, so that whoever started it need not read its log."""

from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """So that whoever waits for the file never reads half of it."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text + "\n")
    partial.replace(path)
