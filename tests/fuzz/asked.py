"""Asked: one thing that a peer sends, and what is known beforehand of its end. Pure."""

from dataclasses import dataclass

from wire.generated.pulsar_api_pb2 import BaseCommand


@dataclass(frozen=True, slots=True)
class Asked:
    """`command` None: bytes that are no command of ours any more. `ends`: the connection may be closed for it.

    `is_filtered`: of a SEND, what is stored may be given to nobody.
    """

    data: bytes
    command: BaseCommand | None
    ends: bool = False
    is_filtered: bool = False
