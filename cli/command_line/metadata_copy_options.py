"""The options of `interpulse export-metadata` and `interpulse import-metadata`. Imports nothing heavy."""

import argparse

from cli.data_place import DATA_HELP

EXPORT, IMPORT = "export-metadata", "import-metadata"


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The way from a standalone to a cluster."""
    out = commands.add_parser(EXPORT, help="a stopped standalone's metadata as a file, to move it into a cluster")
    out.add_argument("--data-dir", metavar="DIR", help=f"of the standalone ({DATA_HELP.format('standalone')})")
    out.add_argument("--file", required=True, metavar="FILE", help="is written")
    back = commands.add_parser(IMPORT, help="what export-metadata wrote, into ZooKeeper")
    back.add_argument("--file", required=True, metavar="FILE", help="what export-metadata wrote")
    back.add_argument("-md", "--metadata-store", required=True, metavar="URL", help="such as zk:host1:2181,host2:2181/chroot")
    back.add_argument("--data-dir", metavar="DIR", help="where the standalone's directory is now, if it was moved too")
