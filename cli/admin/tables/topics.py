"""All commands on topics."""

from cli.admin.tables import topic_policies_by_old_names, topic_rates_by_old_names, topics_themselves

COMMANDS = (*topics_themselves.COMMANDS, *topic_policies_by_old_names.COMMANDS, *topic_rates_by_old_names.COMMANDS)
