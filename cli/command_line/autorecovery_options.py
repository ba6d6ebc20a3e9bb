"""The line of `interpulse autorecovery`. Imports nothing of it."""

import argparse
from typing import Any

COMMAND = "autorecovery"


def add_command(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(COMMAND, help="notices lost bookies, and copies the ledgers that were on them")
    parser.add_argument("--config", metavar="FILE", help="Apache's bookkeeper.conf")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
    parser.add_argument("--json-ready", metavar="FILE", help="write bookieId and pid there once ready")
