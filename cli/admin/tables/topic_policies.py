"""All commands on policies of a topic."""

from cli.admin.tables import topic_rates_and_limits, topic_storage

COMMANDS = (*topic_storage.COMMANDS, *topic_rates_and_limits.COMMANDS)
