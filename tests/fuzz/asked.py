"""Asked: one thing that a peer sends, and what is known beforehand of its end. Pure."""

from dataclasses import dataclass

from wire.generated.pulsar_api_pb2 import BaseCommand


@dataclass(frozen=True, slots=True)
class Asked:
    """`command` None: the bytes were damaged. `ends`: the broker may close the connection for them.

    `is_filtered`: the message of a SEND may be stored and yet be delivered to no consumer.
    """

    data: bytes
    command: BaseCommand | None
    ends: bool = False
    is_filtered: bool = False
