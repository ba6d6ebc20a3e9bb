"""`--regex`: the topics of a namespace whose names fit a pattern, looked for again from time to time."""

import re
import time
from collections.abc import Sequence

from cli.admin.arguments import WrongUsage
from cli.client.errors import ClientError, is_passing
from cli.client.topic import PARTITION, partitions_of, topics_of_namespace
from cli.client_configuration import ClientConfiguration

EVERY_SECONDS = 60.0
"""Interval between two looks for topics; Apache's patternAutoDiscoveryPeriod."""
_PARTITION = re.compile(rf"{PARTITION}\d+$")


class TopicPattern:
    """`persistent://tenant/namespace/PATTERN`, or `tenant/namespace/PATTERN`; WrongUsage for anything else.

    As with Apache, a pattern is held against tenant/namespace/name, and a partitioned topic fits as a whole.
    """

    def __init__(self, text: str, configuration: ClientConfiguration) -> None:
        domain, has_domain, rest = text.partition("://")
        if not has_domain:
            domain, rest = "persistent", text if text.count("/") >= 2 else f"public/default/{text}"
        tenant, _, more = rest.partition("/")
        namespace, _, name = more.partition("/")
        if domain != "persistent" or not (tenant and namespace and name):
            raise WrongUsage(
                f"--regex {text}: expected persistent://TENANT/NAMESPACE/PATTERN; tenant and namespace are plain names"
            )
        try:
            self._pattern = re.compile(rest)
        except re.error as error:
            raise WrongUsage(f"--regex {text}: not a regular expression: {error}") from None
        self._namespace, self._text, self._configuration = f"{tenant}/{namespace}", rest, configuration
        self._looked = 0.0

    def topics(self) -> Sequence[str]:
        """All partitions of all that fit. ClientError."""
        self._looked = time.monotonic()
        found = {_PARTITION.sub("", name) for name in topics_of_namespace(self._namespace, self._text, self._configuration)}
        fitting = sorted(name for name in found if self._pattern.fullmatch(name.partition("://")[2]))
        return [partition for name in fitting for partition in partitions_of(name, self._configuration)]

    def is_due(self) -> bool:
        return time.monotonic() - self._looked >= EVERY_SECONDS

    def topics_now(self) -> Sequence[str] | None:
        """Topics that fit the pattern now; None while no broker can be asked."""
        try:
            return self.topics()
        except ClientError as error:
            if is_passing(error, was_there=True):
                return None
            raise
