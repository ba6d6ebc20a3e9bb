"""`bin/pulsar doctor`: gathers facts, judges them, prints the report. Exit code 0, 1 when a check failed, 2 for wrong usage."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cli.admin.http import AdminConnection
from cli.client_configuration import ClientConfiguration, ConfigurationError, load_client_configuration
from cli.doctor import cluster_checks, data_checks, machine_checks, settings_checks
from cli.doctor.checks import Facts, Finding, judged
from cli.doctor.cluster_facts import bookie_facts, cluster_facts
from cli.doctor.local_facts import directory_facts, machine_facts, settings_facts
from cli.doctor.report import as_json, as_table, exit_code
from ports.properties import MalformedProperties, parse_properties

CHECKS = (*machine_checks.CHECKS, *settings_checks.CHECKS, *data_checks.CHECKS, *cluster_checks.CHECKS)
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    unknown = set(options.only or ()) - {check.id for check in CHECKS}
    if unknown:
        print(f"--only {', '.join(sorted(unknown))}: no such check; --list has them", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(check.id for check in CHECKS))
        return 0
    try:
        findings = examined(options)
    except (OSError, MalformedProperties, ConfigurationError) as error:
        print(f"bin/pulsar doctor: {error}", file=sys.stderr)
        return 2
    print(as_json(findings) if options.json else as_table(findings))
    return exit_code(findings)


def examined(options: argparse.Namespace) -> list[Finding]:
    """Every check on what could be found. OSError, MalformedProperties, ConfigurationError."""
    settings = _settings(Path(options.config)) if options.config else {}
    data_directory = Path(options.data_dir)
    client = load_client_configuration()
    if options.admin_url:
        client = client._replace(web_service_url=options.admin_url)
    connection, brokers = AdminConnection(client, TIMEOUT_SECONDS), _Brokers(client)
    bookie = (
        AdminConnection(client._replace(web_service_url=options.bookie_url), TIMEOUT_SECONDS) if options.bookie_url else None
    )
    try:
        cluster = Facts({}, {}) if options.offline else cluster_facts(connection, settings, brokers.at, options.topics_max)
        replication = bookie_facts(bookie, settings)
    finally:
        connection.close()
        brokers.close()
        if bookie is not None:
            bookie.close()
    local = settings_facts(settings, server_runs="health" in cluster.found)
    facts = merged((machine_facts(data_directory), directory_facts(data_directory, settings), local, cluster, replication))
    return [judged(check, facts) for check in CHECKS if not options.only or check.id in options.only]


class _Brokers:
    """Each by itself, by the scheme of the address that was given."""

    def __init__(self, client: ClientConfiguration) -> None:
        self._client = client
        self._scheme = client.web_service_urls()[0].partition("://")[0]
        self._open: list[AdminConnection] = []

    def at(self, address: str) -> AdminConnection:
        self._open.append(
            AdminConnection(self._client._replace(web_service_url=f"{self._scheme}://{address}"), TIMEOUT_SECONDS)
        )
        return self._open[-1]

    def close(self) -> None:
        for each in self._open:
            each.close()


def _settings(file: Path) -> dict[str, str]:
    return {each.key: each.value for each in parse_properties(file.read_text())}


def merged(parts: Iterable[Facts]) -> Facts:
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for part in parts:
        found |= part.found
        missing |= part.missing
    return Facts(found, missing)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bin/pulsar doctor", description="What is wrong here, how that is seen, what to do.")
    parser.add_argument("--admin-url", metavar="URL", help="of a broker (default: webServiceUrl of conf/client.conf)")
    parser.add_argument("--bookie-url", metavar="URL", help="of a bookie's HTTP: under-replicated ledgers, read-only bookies")
    parser.add_argument("--config", metavar="FILE", help="the settings to look at: Apache's broker.conf, bookkeeper.conf, ...")
    parser.add_argument(
        "--data-dir", metavar="DIR", default=str(ROOT / "data" / "standalone"), help="of a stopped or running server"
    )
    parser.add_argument("--offline", action="store_true", help="ask no server")
    parser.add_argument("--topics-max", type=int, default=500, metavar="N", help="look at no more topics than this")
    parser.add_argument("--only", action="append", metavar="ID", help="this check, may be repeated")
    parser.add_argument("--list", action="store_true", help="the ids of all checks")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
