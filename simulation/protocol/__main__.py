"""`bin/check-protocol`: explores the ledger protocol exhaustively (`ledger_protocol` says what is real in it).

Prints what was explored, and of a violation the steps that lead there. Exit code 1 when there is one, or when it was not
all explored; 2 for wrong usage. `--plant` breaks one thing, and must find it.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cli.command_line.closed_output import exit_status
from simulation.planted import PLANTED
from simulation.protocol.exhaustive import Found
from simulation.protocol.ledger_protocol import BOUNDS, STATES_MAX, check


@dataclass(frozen=True, slots=True)
class ProtocolPlant:
    """A bug and the bounds in which it shows. In the real machine of that name in `planted.PLANTED`, or in the model."""

    bounds: str
    is_modelled: bool = False


PROTOCOL_PLANTS = {
    "one-miss-is-enough": ProtocolPlant("two entries"),
    "reads-do-not-fence": ProtocolPlant("two entries"),
    "one-ack-is-enough": ProtocolPlant("two entries"),
    "confirms-during-a-change": ProtocolPlant("a spare, both"),
    "acks-stay-with-the-index": ProtocolPlant("a spare, both"),
    "ensemble-before-metadata": ProtocolPlant("a spare, both", is_modelled=True),
    "found-is-not-rewritten": ProtocolPlant("two entries", is_modelled=True),
    "damage-is-absence": ProtocolPlant("damaged", is_modelled=True),
}


def run_planted(name: str) -> Found:
    """With that bug, in the bounds where it shows."""
    plant = PROTOCOL_PLANTS[name]
    bounds = BOUNDS[plant.bounds]
    if plant.is_modelled:
        return check(replace(bounds, bugs=frozenset({name})))
    with PLANTED[name].planted():
        return check(bounds)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.plant:
        return _report(options.plant, run_planted(options.plant), 0.0)
    failures = 0
    for name in [options.bounds] if options.bounds else BOUNDS:
        began = time.monotonic()
        failures += _report(name, check(BOUNDS[name], options.states), time.monotonic() - began)
    return int(failures > 0)


def _report(name: str, found: Found, seconds: float) -> int:
    end = "exhausted" if found.is_complete else found.violation or "NOT exhausted: --states is too small"
    print(f"{name}: {found.states} states, {found.transitions} transitions, {seconds:.0f} s: {end}", flush=True)
    for number, step in enumerate(found.story, 1):
        print(f"  {number}. {step}")
    return int(not found.is_complete)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bin/check-protocol", description="Every interleaving of the ledger protocol.")
    parser.add_argument("--bounds", choices=sorted(BOUNDS), help="only these (default: all)")
    parser.add_argument("--plant", choices=sorted(PROTOCOL_PLANTS), metavar="NAME", help="with a bug, see PROTOCOL_PLANTS")
    parser.add_argument(
        "--states", type=int, default=STATES_MAX, metavar="N", help="give up after so many (default: %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(exit_status(main))
