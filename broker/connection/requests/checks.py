"""Checks that several commands share: metadata, schemas, names. Pure; refusals are BrokerError."""

from collections.abc import Iterable, Mapping

from wire.generated import pulsar_api_pb2 as api

from ...errors import BrokerError, ServerError

NAME_CHARACTERS_MAX = 4096


def metadata_of(pairs: Iterable[api.KeyValue]) -> dict[str, str]:
    return {pair.key: pair.value for pair in pairs}


def check_metadata(metadata: Mapping[str, str], bytes_max: int) -> None:
    """METADATA above maxConsumerMetadataSize, as Apache's ServerCnx; a producer's it does not limit."""
    size = sum(len(key) + len(value) for key, value in metadata.items())
    if size > bytes_max:
        message = f"Metadata has a max size of {bytes_max} bytes (maxConsumerMetadataSize), given are {size}"
        raise BrokerError(ServerError.METADATA, message)


def check_name(what: str, name: str, *, may_be_empty: bool = False) -> None:
    if len(name) > NAME_CHARACTERS_MAX:
        raise BrokerError(ServerError.NOT_ALLOWED, f"{what} longer than {NAME_CHARACTERS_MAX} characters")
    if not name and not may_be_empty:
        raise BrokerError(ServerError.NOT_ALLOWED, f"Empty {what}")
