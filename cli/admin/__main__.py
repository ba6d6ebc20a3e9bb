"""`pulsar-admin [options] GROUP COMMAND ...`: exit code 0, or 1 with the reason on stderr, as Apache's tool.

Run as a file by an interpreter that has read nothing else (`python -I -S`), which is why it finds its own package first.
"""

import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli.admin.tool import main
from cli.command_line.closed_output import exit_status

if __name__ == "__main__":
    sys.exit(exit_status(lambda: main(sys.argv[1:])))
