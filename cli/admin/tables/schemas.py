"""Schemas of topics."""

from cli.admin.table import Command

COMMANDS = (
    Command("get", "TOPIC -v/--version:long -a/--all-version", run="schemas:get"),
    Command("delete", "TOPIC -f/--force", "DELETE schemas/{bare-topic}/schema?force={force}"),
    Command("upload", "TOPIC -f/--filename!", run="schemas:upload"),
    Command(
        "extract",
        "TOPIC -j/--jar! -t/--type! -c/--classname! -a/--always-allow-null:bool=true -n/--dry-run",
        run="schemas:extract",
    ),
    Command("metadata", "TOPIC", "GET schemas/{bare-topic}/metadata", output="json"),
    Command("compatibility", "TOPIC -f/--filename!", run="schemas:compatibility"),
)
