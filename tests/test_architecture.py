"""docs/architecture.md: the table of places is true, and the sizes of folders are counted (`python -m tests.folder_sizes`)."""

import ast
import re
from pathlib import Path

from tests.folder_sizes import FILES_MAX, LARGE_FOLDERS, folder_sizes, table

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def places() -> list[tuple[str, str]]:
    """Each path of the table, with each name that follows it; an empty name if none does."""
    rows = PAGE.partition("## Where to look\n")[2].partition("\n## ")[0]
    found: list[tuple[str, str]] = []
    for path, names in re.findall(r"`([\w/]+(?:\.py|\.toml))`((?:: `[\w.]+`)?)", rows):
        found.append((path, names.strip(": `")))
    return found


def defined(path: Path) -> set[str]:
    """Names of classes and functions of a module; those of methods also as `Class.method`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return names


def test_the_table_of_places_answers_eight_questions() -> None:
    rows = PAGE.partition("## Where to look\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\| \w.*\? \|", rows, re.MULTILINE)) == 8
    assert len(places()) >= 12


def test_each_path_of_the_table_exists_and_defines_the_name_beside_it() -> None:
    assert [path for path, _ in places() if not (ROOT / path).is_file()] == []
    assert [f"{path}: {name}" for path, name in places() if name and name not in defined(ROOT / path)] == []


def test_folders_hold_about_fifteen_files() -> None:
    found = {folder: size.files for folder, size in folder_sizes().items() if size.files > FILES_MAX}
    assert found == LARGE_FOLDERS


def test_the_table_of_sizes_has_a_row_for_each_folder_and_a_sum() -> None:
    lines = table().splitlines()
    assert lines[0].split("|")[1:5] == [" folder ", " files ", " lines ", " floors "]
    assert len(lines) == 2 + len(folder_sizes()) + 1
    assert lines[-1].split("|")[2].strip() == str(sum(size.files for size in folder_sizes().values()))
