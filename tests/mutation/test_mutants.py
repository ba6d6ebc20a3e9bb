"""The mutants are small changes that each do something, and a run tells those that tests find from those that they do not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

from tests.mutation.__main__ import choose
from tests.mutation.mutants import mutants_of, mutated_code
from tests.mutation.targets import LAYERS, ROOT, modules

SOURCE = """
class Limit:
    def allows(self, count):
        return count < 10 and not self.is_shut

def first(values):
    if values:
        return values[0]
    return None
"""


def test_each_function_has_the_mutants_of_what_stands_in_it() -> None:
    found = [(mutant.qualname, mutant.what) for mutant in mutants_of("m", SOURCE)]
    assert found == [
        ("Limit.allows", "And -> Or"),
        ("Limit.allows", "Lt -> LtE"),
        ("Limit.allows", "10 -> 11"),
        ("first", "condition negated"),
        ("first", "0 -> 1"),
    ]


def test_the_code_of_a_mutant_does_something_else() -> None:
    by_what = {mutant.what: mutant for mutant in mutants_of("m", SOURCE)}
    wrong = FunctionType(mutated_code(SOURCE, "m.py", by_what["0 -> 1"]), {})
    assert wrong([3, 4]) == 4
    negated = FunctionType(mutated_code(SOURCE, "m.py", by_what["condition negated"]), {})
    assert negated([3]) is None


def test_every_module_that_is_mutated_belongs_to_a_layer_whose_tests_exist() -> None:
    assert [name for name in modules() if name.partition(".")[0] not in LAYERS] == []
    assert [path for tests in LAYERS.values() for path in tests if not (ROOT / path).exists()] == []


def test_the_choice_of_mutants_follows_its_seed() -> None:
    assert choose("metadata.claim", 5, 1) == choose("metadata.claim", 5, 1)
    assert choose("metadata.claim", 5, 1) != choose("metadata.claim", 5, 2)


def test_a_run_judges_mutants_by_the_tests_that_call_them(tmp_path: Path) -> None:
    """Runs in a process of its own: the run forks, and this one has threads."""
    (tmp_path / "halves.py").write_text("def half(n):\n    return n // 2\n\ndef unused(n):\n    return n + 1\n")
    (tmp_path / "test_halves.py").write_text("from halves import half\n\ndef test_half():\n    assert half(8) == 4\n")
    script = (
        "import json, sys, pytest\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import halves\n"
        "from tests.mutation.callers import callers_of\n"
        "from tests.mutation.mutants import mutants_of\n"
        "from tests.mutation.runs import Mutations\n"
        "found = {}\n"
        "judged = lambda mutant, judgement: found.update({mutant.what: judgement.verdict.value})\n"
        "mutants = mutants_of('halves', open(halves.__file__).read())\n"
        "learn = lambda items: callers_of(['halves'], items, None)\n"
        "pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:randomly', '--timeout=0', '--rootdir', sys.argv[1],"
        " '-c', '/dev/null', sys.argv[1]], plugins=[Mutations(mutants, judged, 20, learn)])\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "FloorDiv -> Mult": "killed",
        "2 -> 3": "killed",
        "Add -> Sub": "not called",
        "1 -> 2": "not called",
    }
