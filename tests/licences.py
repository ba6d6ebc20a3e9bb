"""The licence of each library in the lock files, as its own installed metadata states it.

`python -m tests.licences` prints the rows of `docs/licences.md`; the column with the SPDX expression is a person's judgement.
"""

import re
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
STATEMENT_CHARACTERS_MAX = 60
"""The field `License` holds a whole text in some packages: its first line says which."""


def locks() -> list[Path]:
    return sorted(ROOT.glob("requirements*.lock"))


def locked(lock: Path) -> set[str]:
    """The names of the libraries that a lock file pins, as PyPI normalises them."""
    return {normalised(name) for name in re.findall(r"^([A-Za-z0-9][\w.-]*)==", lock.read_text(), re.MULTILINE)}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(name: str) -> str | None:
    """The licence that the installed library states about itself; None where the library is not installed."""
    try:
        return _statement(metadata(name))
    except PackageNotFoundError:
        return None


def _statement(about: PackageMetadata) -> str:
    """The SPDX expression, else the first line of the field `License`, else the classifiers."""
    fields = about.json
    for key in ("license_expression", "license"):
        text = str(fields.get(key, "")).strip()
        if text:
            return re.sub(r"\s+", " ", text.splitlines()[0]).strip()[:STATEMENT_CHARACTERS_MAX]
    classifiers = [str(each) for each in fields.get("classifier", []) if str(each).startswith("License ::")]
    return ", ".join(each.rpartition("::")[2].strip() for each in classifiers)


def rows() -> dict[str, tuple[str, str, str]]:
    """The page's rows: by library its SPDX expression, its own statement, and the lock files that pin it."""
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines() if line.startswith("| ")
    ]
    return {name: (spdx, statement, where) for name, spdx, statement, where in cells[2:]}


def where(name: str) -> str:
    """The lock files that pin a library, by their short names: `requirements-dev.lock` is `dev`."""
    found = [lock.stem.removeprefix("requirements").removeprefix("-") or "run" for lock in locks() if name in locked(lock)]
    return ", ".join(found)


def main() -> None:
    known = rows()
    for name in sorted(set().union(*map(locked, locks()))):
        spdx, before, _ = known.get(name, ("", "", ""))
        statement = declared(name) or before
        print(f"| {name} | {spdx or statement} | {statement} | {where(name)} |")


if __name__ == "__main__":
    main()
