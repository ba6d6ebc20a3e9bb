"""The options of several processes on one machine. Imports nothing heavy."""

import argparse

PROCESSES, PROCESS_OF = "--processes", "--process-of"
KINDS = ("broker", "bookie")


def add_options(commands: "dict[str, argparse.ArgumentParser]") -> None:
    """To the commands that have them; a standalone's says what there is in its place."""
    for kind in KINDS:
        commands[kind].add_argument(
            PROCESSES, metavar="N", help="so many on this machine, one for each core: docs/more-cores.md"
        )
        commands[kind].add_argument(PROCESS_OF, help=argparse.SUPPRESS)
    commands["standalone"].add_argument(PROCESSES, metavar="N", help=argparse.SUPPRESS)


STANDALONE_REFUSAL = (
    "--processes: a standalone's metadata and bookie are in its one process and nobody else can reach them: for several"
    " processes run `interpulse devcluster --brokers N`, or ZooKeeper, bookies and `interpulse broker --processes N`"
)
