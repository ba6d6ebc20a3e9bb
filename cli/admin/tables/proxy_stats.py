"""A proxy's figures."""

from cli.admin.table import Command

COMMANDS = (
    Command("connections", "-i/--indent", "GET /proxy-stats/connections", output="json"),
    Command("topics", "-i/--indent", "GET /proxy-stats/topics", output="json"),
)
