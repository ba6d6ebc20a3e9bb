"""The house rules that a machine can check, over every file that git tracks.

Lists of exceptions shrink: an entry that is no longer needed fails, and so does one that is outgrown.
"""

import ast
import dataclasses
import functools
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from cli.configuration.loading import known_keys
from cli.standalone.server import SETTINGS
from ports.settings import fold
from tests import docstring_openings
from tests.declarations import only_declares

ROOT = Path(__file__).resolve().parent.parent

MODULE_LINES_MAX = 400
LONG_MODULES: Mapping[str, int] = {}

FUNCTION_LINES_MAX = 60
LONG_FUNCTIONS = {
    "wire/kernels/messages.py:_frames": 80,  # one loop for the compiler: a call per message is what the kernel saves
}

ARGUMENTS_MAX = 7
LONG_RECORDS = {
    "broker/connection/routes.py:Families": 8,
    "broker/policies/policies.py:EffectivePolicies": 27,
    "broker/topic/contract.py:ConsumerStats": 12,
    "broker/topic/contract.py:ProducerRequest": 10,
    "broker/topic/contract.py:SubscribeRequest": 17,
    "broker/topic/statistics/topic_stats.py:PublisherStats": 11,
    "broker/topic/statistics/topic_stats.py:SubscriberStats": 19,
    "broker/topic/statistics/topic_stats.py:SubscriptionStats": 28,
    "broker/topic/statistics/topic_stats.py:TopicStats": 24,
    "broker/topic/statistics/transaction_facts.py:BufferFacts": 9,
    "cli/configuration/report.py:Explanation": 10,
    "cli/doctor/examination.py:Asked": 9,
    "pipeline/pyspark_pulsar/decode/singles.py:Singles": 9,
    "pipeline/pyspark_pulsar/jobs/letters/letter_causes.py:Letter": 10,
    "pipeline/pyspark_pulsar/options.py:SourceOptions": 20,
    "pipeline/pyspark_pulsar/sink/options.py:SinkOptions": 14,
    "simulation/clients/consumer.py:ConsumerShape": 12,
    "simulation/cluster/plan.py:ClusterPlan": 10,
    "simulation/quorum/plan.py:QuorumPlan": 11,
    "wire/run.py:SendMix": 10,
}
"""Records of options, plans, counts and handlers with more fields than that; no part with work of its own is here."""

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}

SILENT_HANDLERS: Mapping[str, int] = {}
"""Modules with an `except ...: pass` that does not say why, and how many of them."""

SLEEPS_IN_REAL_TIME: Mapping[str, int] = {}
"""Test modules that sleep without virtual time, with how many such calls. There should be none: wait for the event."""

PROSE_AND_SOURCE = {
    ".py",
    ".pyi",
    ".pxd",
    ".h",
    ".md",
    ".proto",
    ".java",
    ".go",
    ".rs",
    ".toml",
    ".sh",
    ".conf",
    ".yml",
    ".yaml",
}
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(?:work|root|farm)/")


def tracked() -> Iterator[str]:
    """Paths that git knows and that are still there, without generated code, which has no style to check."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in listed.split("\0"):
        if path and (ROOT / path).is_file() and not path.startswith("wire/generated/"):
            yield path


@functools.cache
def texts() -> Mapping[str, str]:
    written = [path for path in tracked() if Path(path).suffix in PROSE_AND_SOURCE or path.startswith(("bin/", ".ci/"))]
    return {path: (ROOT / path).read_text() for path in written}


@functools.cache
def modules() -> Mapping[str, ast.Module]:
    """Every Python file, also those in bin/ that only say so in their first line."""
    return {
        path: ast.parse(text, path)
        for path, text in texts().items()
        if path.endswith(".py") or text.startswith("#!/usr/bin/env python3")
    }


def over_the_limit(found: Mapping[str, int], limit: int, exceptions: Mapping[str, int]) -> list[str]:
    """Names that are too long without an exception or beyond it, and exceptions that nothing needs any more."""
    too_long = [f"{name}: {size} lines" for name, size in found.items() if size > exceptions.get(name, limit)]
    idle = [f"{name}: no longer needs its exception" for name in exceptions if found.get(name, 0) <= limit]
    return too_long + idle


def test_every_module_says_what_it_owns() -> None:
    assert [path for path, module in modules().items() if module.body and not ast.get_docstring(module)] == []


def test_docstrings_begin_with_their_subject() -> None:
    assert docstring_openings.hiding(modules()) == [], "docstrings to reword: a noun or a verb first"


def test_modules_are_short() -> None:
    lengths = {path: len(texts()[path].splitlines()) for path in modules()}
    assert over_the_limit(lengths, MODULE_LINES_MAX, LONG_MODULES) == []


def test_functions_are_short() -> None:
    lengths = {
        f"{path}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert over_the_limit(lengths, FUNCTION_LINES_MAX, LONG_FUNCTIONS) == []


def test_no_class_takes_more_than_seven_arguments() -> None:
    """Arguments that belong together are one value with a name. Fields without a default count for a dataclass."""
    taken = {
        f"{path}:{node.name}": _arguments(node)
        for path, module in modules().items()
        if not path.startswith(("tests/", "benchmarks/"))
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
    }
    assert {name: count for name, count in taken.items() if count > ARGUMENTS_MAX} == LONG_RECORDS


def _arguments(node: ast.ClassDef) -> int:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            given = statement.args
            return len(given.posonlyargs) + len(given.args) - 1 + len(given.kwonlyargs)
    if not any(ast.unparse(each).startswith(("dataclass", "record")) for each in node.decorator_list):
        return 0
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each.annotation)]
    return sum(each.value is None for each in fields)


def test_names_of_folders_and_modules_say_what_is_in_them() -> None:
    named = {path: {word for part in Path(path).with_suffix("").parts for word in part.split("_")} for path in tracked()}
    assert [path for path, words in named.items() if words & FORBIDDEN_NAMES] == []


def test_no_error_is_swallowed_without_a_reason() -> None:
    handlers = [
        (path, node) for path, module in modules().items() for node in ast.walk(module) if isinstance(node, ast.ExceptHandler)
    ]
    assert [f"{path}:{node.lineno}" for path, node in handlers if node.type is None] == []
    silent = [path for path, node in handlers if isinstance(node.body[0], ast.Pass) and not _has_comment(path, node)]
    assert Counter(silent) == SILENT_HANDLERS


def _has_comment(path: str, node: ast.ExceptHandler) -> bool:
    return any("#" in line for line in texts()[path].splitlines()[node.lineno - 1 : node.end_lineno])


CORE = ("broker/", "bookie/", "bookkeeper/", "managed_ledger/", "metadata/", "ports/", "wire/")
UNTESTED = ROOT / "tests" / "modules_without_tests.txt"
"""Modules of the core that make decisions and have no test file of their name; the list only shrinks."""


def test_modules_of_the_core_have_a_test_file_of_their_name() -> None:
    """Modules that only declare types, errors, fields and constants need none: the syntax tree says which (`declarations`)."""
    core = {path for path in modules() if path.startswith(CORE) and path.endswith(".py") and not path.endswith("__init__.py")}
    deciding = {path for path in core if not only_declares(modules()[path])}
    named = {path: str(Path("tests", path).with_name(f"test_{Path(path).name}")) for path in deciding}
    found = {path for path, test in named.items() if test not in modules()}
    listed = set(UNTESTED.read_text().split())
    assert sorted(found - listed) == [], "modules without tests/<folder>/test_<module>.py"
    assert sorted(listed - found) == [], "lines of tests/modules_without_tests.txt to delete"


def test_nothing_is_marked_as_unfinished() -> None:
    assert [path for path, text in texts().items() if UNFINISHED.search(text)] == []


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    assert [path for path, text in texts().items() if MACHINE_PATHS.search(text)] == []


def test_pages_that_are_named_exist_and_decisions_are_numbered_once() -> None:
    named = {(path, page) for path, text in texts().items() for page in re.findall(r"\bdocs/[\w/.-]+\.md\b", text)}
    assert sorted(f"{path}: {page}" for path, page in named if not (ROOT / page).is_file()) == []
    numbers = [path.name[:4] for path in (ROOT / "docs" / "adr").glob("*.md")]
    assert sorted(numbers) == [f"{number:04}" for number in range(1, len(numbers) + 1)]


def test_tests_sleep_in_virtual_time_only() -> None:
    counts = {path: len(list(_sleeps(module))) for path, module in modules().items() if path.startswith("tests/")}
    real = {path: count for path, count in counts.items() if count and "simulation/world/loop.py" not in imported(path)}
    assert real == SLEEPS_IN_REAL_TIME


def _sleeps(module: ast.Module) -> Iterator[ast.Call]:
    """Calls of time.sleep or asyncio.sleep for a time that is written there, and not 0."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "asyncio.sleep") and node.args:
            seconds = node.args[0]
            if isinstance(seconds, ast.Constant) and seconds.value:
                yield node


@functools.cache
def imported(path: str) -> frozenset[str]:
    """The files of the tree that this one imports, directly or not."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        new = direct_imports(waiting.pop()) - found
        found |= new
        waiting += sorted(new)
    return frozenset(found)


@functools.cache
def direct_imports(path: str) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(modules()[path]):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = list(Path(path).parent.parts)[: len(Path(path).parent.parts) - node.level + 1] if node.level else []
            base = ".".join([*package, *([node.module] if node.module else [])])
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    files = {name.replace(".", "/") + ending for name in names for ending in (".py", "/__init__.py")}
    return frozenset(files & modules().keys())


def test_every_setting_is_a_key_of_apaches() -> None:
    known = {fold(key) for key in known_keys()}
    fields = [f"{cls.__name__}.{field.name}" for cls in SETTINGS for field in dataclasses.fields(cls)]
    assert [name for name in fields if fold(name.partition(".")[2]) not in known] == []


def test_every_library_says_what_it_is_for() -> None:
    project = tomllib.loads(texts()["pyproject.toml"])
    wanted = [*project["project"]["dependencies"], *(each for group in project["dependency-groups"].values() for each in group)]
    rows = [line.split("|")[1] for line in texts()["docs/dependencies.md"].splitlines() if line.startswith("|")]
    explained = set(re.findall(r"[\w-]+", " ".join(rows)))
    assert [name for name in wanted if re.split(r"[<>=~\[ ]", name)[0] not in explained] == []


def test_servers_write_their_lines_through_the_limits_alone() -> None:
    """A peer causes no line that ports/log_limits.py does not count: no other module writes to stderr or makes a handler."""
    servers = ("bookie/", "bookkeeper/", "broker/", "managed_ledger/", "metadata/", "ports/", "wire/")
    around = {"print", "StreamHandler", "FileHandler", "WatchedFileHandler", "basicConfig", "addHandler", "stderr", "stdout"}
    found = {
        path
        for path, module in modules().items()
        if path.startswith(servers)
        for node in ast.walk(module)
        if (isinstance(node, ast.Name) and node.id in around) or (isinstance(node, ast.Attribute) and node.attr in around)
    }
    assert found == {"ports/logs.py"}, "the audit log alone has a file of its own, which has a line for each request"
