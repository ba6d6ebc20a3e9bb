"""The topics of one run of pulsar-perf, by their names, `--num-topics` and their partitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from cli.admin.arguments import WrongUsage
from cli.client.topic import partitions_of
from cli.client_configuration import ClientConfiguration


def topic_names(values: Mapping[str, Any], separator: str = "-") -> Sequence[str]:
    """Names, as Apache's tool takes them: one for each topic, or one that is numbered. WrongUsage."""
    names, count = values["topic"], values["num-topics"]
    if not names:
        raise WrongUsage("Missing required parameter: '<topic>'")
    if len(names) == count:
        return list(names)
    if len(names) == 1:
        return [f"{names[0]}{separator}{number}" for number in range(count)]
    if count == 1:  # the default: nobody said how many
        return list(names)
    raise WrongUsage(f"The size of topics list should be equal to --num-topic: {len(names)} names, {count} topics")


def with_partitions(names: Sequence[str], configuration: ClientConfiguration) -> Sequence[Sequence[str]]:
    """The partitions of each. ClientError."""
    return [partitions_of(name, configuration) for name in names]
