"""`interpulse doctor`: gathers facts, judges them, prints the report. Exit code 0, 1 when a check failed, 2 for wrong usage."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from cli.client_configuration import ConfigurationError
from cli.command_line.closed_output import exit_status
from cli.data_place import default_data
from cli.doctor.check import judged
from cli.doctor.examination import CHECKS, Asked, facts_of
from cli.doctor.facts.topics import OPEN_TRANSACTION_SECONDS, PATIENCE_SECONDS, TOPICS_MAX
from cli.doctor.report import as_json, as_table, checks_table, exit_code
from ports.properties import MalformedProperties

EPILOG = (
    "Exit code: 0 when nothing failed (warnings do not count), 1 when a check failed, 2 for wrong usage or an unreadable file."
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    unknown = set(options.only or ()) - {check.id for check in CHECKS}
    if unknown:
        print(f"--only {', '.join(sorted(unknown))}: no such check; --list has them", file=sys.stderr)
        return 2
    if options.list or options.table:
        print(checks_table(CHECKS) if options.table else "\n".join(check.id for check in CHECKS))
        return 0
    try:
        facts = facts_of(_asked(options))
    except (OSError, MalformedProperties, ConfigurationError, UnicodeDecodeError) as error:
        print(f"interpulse doctor: {error}", file=sys.stderr)
        return 2
    findings = [judged(check, facts) for check in CHECKS if not options.only or check.id in options.only]
    print(as_json(findings) if options.json else as_table(findings))
    return exit_code(findings)


def _asked(options: argparse.Namespace) -> Asked:
    return Asked(
        admin_url=options.admin_url or "",
        bookie_url=options.bookie_url or "",
        config=Path(options.config) if options.config else None,
        data_directory=Path(options.data_dir),
        offline=options.offline,
        deep=options.deep,
        topics_max=options.topics_max,
        patience_seconds=options.patience,
        transaction_seconds=options.open_transaction,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="interpulse doctor",
        description="What is wrong here, how that is seen, what to do. Changes nothing.",
        epilog=EPILOG,
    )
    for flags, more in _options():
        parser.add_argument(*flags, **more)  # type: ignore[arg-type]  # a table
    return parser


def _options() -> Iterable[tuple[tuple[str, ...], dict[str, object]]]:
    data = str(default_data("standalone"))
    yield ("--admin-url",), {"metavar": "URL", "help": "of a broker (default: webServiceUrl of conf/client.conf)"}
    yield ("--bookie-url",), {"metavar": "URL", "help": "of a bookie's HTTP, where ZooKeeper cannot be asked from here"}
    yield ("--config",), {"metavar": "FILE", "help": "the settings to look at: Apache's broker.conf, bookkeeper.conf, ..."}
    yield ("--data-dir",), {"metavar": "DIR", "default": data, "help": "of a stopped or running server"}
    yield ("--offline",), {"action": "store_true", "help": "ask no server"}
    yield ("--deep",), {"action": "store_true", "help": "read all of a stopped bookie's entry logs, however large"}
    yield (
        ("--topics-max",),
        {
            "type": int,
            "default": TOPICS_MAX,
            "metavar": "N",
            "help": f"look at no more topics than this (default: {TOPICS_MAX})",
        },
    )
    patience = f"what stands still for so long is said to (default: {PATIENCE_SECONDS:g})"
    yield ("--patience",), {"type": float, "default": PATIENCE_SECONDS, "metavar": "SECONDS", "help": patience}
    open_ = f"a transaction that is open for so long is named (default: {OPEN_TRANSACTION_SECONDS:g})"
    yield ("--open-transaction",), {"type": float, "default": OPEN_TRANSACTION_SECONDS, "metavar": "SECONDS", "help": open_}
    yield ("--only",), {"action": "append", "metavar": "ID", "help": "this check, may be repeated"}
    yield ("--list",), {"action": "store_true", "help": "the ids of all checks"}
    yield ("--table",), {"action": "store_true", "help": "all checks, their faults and remedies, as a table in Markdown"}
    yield ("--json",), {"action": "store_true", "help": "for programs"}


if __name__ == "__main__":
    sys.exit(exit_status(main))
