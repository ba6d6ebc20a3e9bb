"""`python -m tests.mutation --count 1000 --seed 1`: mutants of the pure machines and of storage, and those that no test finds.

Each is tried with the tests of its layer that call its function. Prints the survivors and how many were found; `--out FILE`
keeps a line of JSON for each mutant, and a run with the same file goes on where it ended.
"""

import argparse
import functools
import importlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutation.callers import callers_of
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.runs import Judgement, Mutations, Verdict
from tests.mutation.targets import LAYERS, modules

QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "--timeout=0", "--no-header")


class Record:
    """Record of the fate of each mutant, kept in a file where there is one."""

    def __init__(self, out: Path | None) -> None:
        self._out = out
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out is not None and out.exists() else []
        self.verdicts: dict[str, str] = {row["mutant"]: row["verdict"] for row in rows}

    def add(self, mutant: Mutant, judgement: Judgement) -> None:
        verdict = judgement.verdict
        self.verdicts[str(mutant)] = verdict.value
        if verdict in (Verdict.SURVIVED, Verdict.NOT_CALLED):
            left = f" ({judgement.untried} slower tests untried)" if judgement.untried else ""
            print(f"{verdict.value}: {mutant}{left}", flush=True)
        if self._out is not None:
            row = {"mutant": str(mutant), "verdict": verdict.value, "by": judgement.found_by, "untried": judgement.untried}
            with self._out.open("a") as out:
                out.write(json.dumps(row) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    record = Record(options.out)
    done = {mutant for mutant, verdict in record.verdicts.items() if verdict not in options.again}
    wanted = named(options.these) if options.these else choose(options.modules, options.count, options.seed)
    chosen = [mutant for mutant in wanted if str(mutant) not in done]
    part, parts = map(int, options.part.split("/"))
    chosen = chosen[part - 1 :: parts]
    if options.again:
        chosen = [mutant for mutant in chosen if str(mutant) in record.verdicts]
    for layer, tests in LAYERS.items():
        mutants = [mutant for mutant in chosen if mutant.module.startswith(layer) and layer.startswith(options.layer)]
        if mutants:
            learn = functools.partial(callers_of, modules(layer), kept=options.callers)
            plugin = Mutations(mutants, record.add, options.seconds, learn)
            pytest.main([*QUIET, *(options.tests or tests)], plugins=[plugin])
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(record.verdicts.values()).items())))
    return 0


def choose(prefix: str, count: int, seed: int) -> list[Mutant]:
    """`count` mutants by chance from the modules whose names begin with `prefix`."""
    found = _all_of(modules(prefix))
    print(f"{len(found)} mutants in all", file=sys.stderr)
    return random.Random(seed).sample(found, min(count, len(found)))


def named(these: Path) -> list[Mutant]:
    """The mutants that the lines of a file name, as a run prints them; where in its source each stands may have changed."""
    names = [_without_line(line) for line in these.read_text().splitlines() if line]
    found = {_without_line(str(mutant)): mutant for mutant in _all_of(sorted({name.partition(" ")[0] for name in names}))}
    if missing := [name for name in names if name not in found]:
        raise SystemExit(f"no such mutants any more: {'; '.join(missing)}. Name them as a new run prints them.")
    return [found[name] for name in names]


def _all_of(names: Sequence[str]) -> list[Mutant]:
    return [each for name in names for each in mutants_of(name, Path(importlib.import_module(name).__file__ or "").read_text())]


def _without_line(name: str) -> str:
    module, _, rest = name.partition(":")
    return f"{module} {rest.partition(' ')[2]}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="mutants to try (100)")
    parser.add_argument("--seed", type=int, default=1, help="which are chosen (1)")
    parser.add_argument("--modules", default="", help="only of modules whose name begins so")
    parser.add_argument("--layer", default="", help="only of layers whose name begins so")
    parser.add_argument("--these", type=Path, metavar="FILE", help="instead: those that its lines name, as a run prints them")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="the first, second ... of N parts of what is left to try")
    parser.add_argument("--seconds", type=float, default=20, help="that the tests of a mutant may take, slow ones last (20)")
    parser.add_argument("--again", action="append", default=[], metavar="VERDICT", help="only those of FILE that ended so")
    parser.add_argument("--tests", action="append", default=[], metavar="PATH", help="with these tests, not those of the layer")
    parser.add_argument("--callers", type=Path, help="a folder that keeps which test calls what for the next run")
    parser.add_argument("--out", type=Path, help="a file for a line of JSON each")
    return parser


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(code)
