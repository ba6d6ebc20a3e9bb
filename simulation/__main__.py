"""`bin/simulate`: runs seeds, prints what failed and how to see it again. Exit code 1 when a seed failed, 2 for wrong usage."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from cli.command_line.closed_output import exit_status
from simulation.checks.memory import watched
from simulation.cluster.full_bookie_scenario import run_full_bookie_seed
from simulation.cluster.scenario import run_cluster_seed
from simulation.cluster.split_scenario import run_split_seed
from simulation.ledgers.ledger_scenario import run_ledger_seed, run_torn_seed
from simulation.ledgers.log_scenario import run_log_seed
from simulation.planted import PLANTED, Run
from simulation.quorum.full_repair import run_full_repair_seed
from simulation.quorum.scenario import run_fence_seed, run_loss_seed, run_quorum_seed, run_rot_seed
from simulation.standalone.deduplication_scenario import run_deduplication_seed
from simulation.standalone.full_disk_scenario import run_full_disk_seed
from simulation.standalone.scenario import run_seed
from simulation.transfers.scenario import run_transfer_seed
from simulation.world.outcome import Outcome
from simulation.world.steps import counted

SCENARIOS: dict[str, Run] = {
    "standalone": run_seed,
    "ledger": run_ledger_seed,
    "log": run_log_seed,
    "quorum": run_quorum_seed,
    "cluster": run_cluster_seed,
    "transactions": run_transfer_seed,
    "deduplication": run_deduplication_seed,
    "full-disk": run_full_disk_seed,
    "full-bookie": run_full_bookie_seed,
    "full-repair": run_full_repair_seed,
    "fence": run_fence_seed,
    "rot": run_rot_seed,
    "loss": run_loss_seed,
    "torn": run_torn_seed,
    "split": run_split_seed,
}

PROGRESS_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    plant = PLANTED[options.plant] if options.plant else None
    run = SCENARIOS[options.scenario] if plant is None else plant.run
    with ExitStack() as around:
        if plant is not None:
            around.enter_context(plant.planted())
        meter = around.enter_context(counted()) if options.measure else None
        if options.measure:
            around.enter_context(watched())
        outcomes = _run_all(options, run)
    if meter is not None:
        print(f"  the costliest callback: {meter.worst.steps} steps in {meter.worst.name}: {meter.worst.where}")
    return int(any(outcome.failure for outcome in outcomes))


def _run_all(options: argparse.Namespace, run: Run) -> list[Outcome]:
    outcomes = []
    started = told = time.monotonic()
    for seed in range(options.first, options.first + options.seeds):
        outcome = _run(run, seed, options.trace)
        outcomes.append(outcome)
        if outcome.failure is not None:
            print(f"seed {seed} failed: {outcome.failure}\n  again: {_replay(seed, options)}", flush=True)
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"{len(outcomes)} of {options.seeds} seeds, {told - started:.0f} s", file=sys.stderr, flush=True)
    print(_summary(outcomes, time.monotonic() - started))
    return outcomes


def _run(run: Run, seed: int, trace: str | None) -> Outcome:
    if trace is None:
        return run(seed, None)
    with open(trace, "w", encoding="utf-8") as sink:
        return run(seed, sink)


def _replay(seed: int, options: argparse.Namespace) -> str:
    which = f" --plant {options.plant}" if options.plant else f" --scenario {options.scenario}"
    measure = " --measure" if options.measure else ""
    return f"bin/simulate --seeds 1 --from {seed}{which}{measure} --trace trace.txt"


def _summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    failed = [outcome.seed for outcome in outcomes if outcome.failure is not None]
    events: Counter[str] = Counter()
    for outcome in outcomes:
        events.update(outcome.events)
    virtual = sum(outcome.seconds for outcome in outcomes)
    lines = [
        f"{len(outcomes)} seeds, {len(failed)} failed{f': {failed}' if failed else ''}; "
        f"{seconds:.1f} s for {virtual:.0f} virtual seconds and {sum(outcome.callbacks for outcome in outcomes)} callbacks",
        "  " + ", ".join(f"{kind} {count}" for kind, count in sorted(events.items())),
    ]
    if len(outcomes) == 1:
        lines.append(f"  trace hash {outcomes[0].trace_hash}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bin/simulate", description="Runs whole servers in simulation, one life per seed.")
    parser.add_argument("--seeds", type=int, default=100, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="S", help="the first one (default: %(default)s)")
    parser.add_argument("--trace", metavar="FILE", help="write every event there; of several seeds the last one's stay")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="standalone", help="default: %(default)s")
    parser.add_argument("--plant", choices=sorted(PLANTED), metavar="NAME", help=f"with a bug: {', '.join(sorted(PLANTED))}")
    parser.add_argument(
        "--measure", action="store_true", help="count the steps of each callback, and what a standalone holds at the end"
    )
    return parser


if __name__ == "__main__":
    sys.exit(exit_status(main))
