"""A broker's figures."""

from cli.admin.table import Command

COMMANDS = (
    Command("monitoring-metrics", "-i/--indent", "GET broker-stats/metrics", output="gson-each"),
    Command("mbeans", "-i/--indent", "GET broker-stats/mbeans", output="gson"),
    Command("topics", "-i/--indent", "GET broker-stats/topics", output="gson", aliases=("destinations",)),
    Command("allocator-stats", "ALLOCATOR", "GET broker-stats/allocator-stats/{allocator}", output="json"),
    Command("load-report", request="GET broker-stats/load-report", output="json"),
)
