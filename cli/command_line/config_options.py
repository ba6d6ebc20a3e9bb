"""The command line of `interpulse config`. Imports nothing that takes time."""

import argparse

COMMAND = "config"
KINDS = ("broker", "standalone", "bookie", "proxy")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    config = commands.add_parser(COMMAND, help="what a configuration file would do: check, diff, explain")
    what = config.add_subparsers(required=True, metavar="WHAT", dest="config_command")
    check = what.add_parser(
        "check", help="what takes effect, what does not and why, what contradicts itself; exit code 1: refused"
    )
    diff = what.add_parser("diff", help="what the file sets to something else than the default")
    for parser in (check, diff):
        parser.add_argument(
            "file", metavar="FILE", help="broker.conf, standalone.conf, bookkeeper.conf or proxy.conf, Apache's or ours"
        )
        parser.add_argument("--for", dest="kind", choices=KINDS, help="which process reads it (default: as the file is called)")
        parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
        parser.add_argument("--json", action="store_true", help="for programs")
    explain = what.add_parser("explain", help="what one key does here, and its defaults")
    explain.add_argument("key", metavar="KEY")
    explain.add_argument("--json", action="store_true", help="for programs")
