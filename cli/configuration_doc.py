"""`python -m cli.configuration_doc` writes docs/configuration.md: the settings in effect, from the dataclasses that read them.

A test holds that the committed page is current, and that no row is blank.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from bookie.server.security.settings import BookieSecuritySettings
from bookie.server.settings import BookieServerSettings
from bookie.web.settings import BookieWebSettings
from bookkeeper.repair.settings import RepairSettings
from bookkeeper.security_settings import BookKeeperSecuritySettings
from broker.proxy.settings import ProxySettings
from cli.configuration.changes import AT_START_ONLY
from cli.configuration.keys import apache_broker_keys
from cli.configuration.loading import CONF, known_keys, load_configuration
from cli.configuration.notes import DIFFERENT, note_of
from cli.configuration.server_settings import ClusterSettings
from cli.standalone.server import SETTINGS
from metadata.zookeeper.settings import ZooKeeperSettings
from ports.settings import fold, setting_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """# Settings in effect

Keys are Apache's. They come from the file given with `--config`, and `--set KEY=VALUE` wins over the file; under a standalone's
file stands `conf/standalone.conf`, whatever file that is. An empty value leaves the default. Files of Apache's from 2.8 on are
taken whole, with older names (`zookeeperServers`) as what they meant. A key that no version of Apache's has ends the start with
the nearest one. One that Apache has and that is not below is in `conf/broker-keys-without-effect.txt` (or `bookkeeper-`,
`proxy-`) with the reason: it is taken with one line in the log, or ends the start where it asks for something that is missing.
Settings that contradict each other are a line of the log, or end the start where nothing could work with them.
`interpulse config check FILE` tells all that for a file of yours, `config diff FILE` what it changes, `config explain KEY` what
one key does. "Dynamic" is what `pulsar-admin brokers update-dynamic-config` changes while brokers run. Lists are separated by
commas. A maximum of 0 means no limit.

This page is written by `python -m cli.configuration_doc`.
"""


def page() -> str:
    spelling = {fold(key): key for key in known_keys()}
    shipped = load_configuration([("standalone.conf", (CONF / "standalone.conf").read_text())], []).values
    parts, seen = [HEAD], set()
    for cls in (
        *SETTINGS,
        BookieServerSettings,
        BookieSecuritySettings,
        BookieWebSettings,
        RepairSettings,
        BookKeeperSecuritySettings,
        ClusterSettings,
        ZooKeeperSettings,
        ProxySettings,
    ):
        rows = []
        for field in dataclasses.fields(cls):
            key = spelling[fold(field.name)]
            if key not in seen:
                rows.append(_row(key, setting_text(field.default), shipped, note_of(cls, field.name).replace("|", "\\|")))
            seen.add(key)
        parts.append("\n".join([f"## {cls.__module__.removesuffix('.settings')}", "", *_HEADINGS, *rows]) + "\n")
    return "\n".join(parts)


_HEADINGS = ("| key | default | Apache's, where it differs | what is to be known |", "| --- | --- | --- | --- |")


def _row(key: str, default: str, shipped: Mapping[str, str], note: str) -> str:
    apache, why = DIFFERENT.get(key, ("", ""))
    in_file = f"`conf/standalone.conf` sets {shipped[key]}" if key in shipped and shipped[key] != default else ""
    is_dynamic = key in apache_broker_keys() and apache_broker_keys()[key].dynamic and key not in AT_START_ONLY
    known = ". ".join(part.rstrip(".") for part in ("Dynamic" if is_dynamic else "", note, why, in_file) if part)
    return f"| {key} | {default} | {apache} | {known} |"


if __name__ == "__main__":
    PAGE.write_text(page())
