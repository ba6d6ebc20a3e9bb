"""Text of commands that is UTF-8."""

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandLookupTopic
from wire.readable_text import is_readable


def lookup(topic: str) -> bytes:
    return BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=CommandLookupTopic(topic=topic, request_id=1)).SerializeToString()


def test_a_command_of_utf_8_is_readable() -> None:
    assert is_readable(lookup("persistent://public/default/a"))
    assert is_readable(lookup("persistent://public/default/größe"))


def test_a_command_with_other_bytes_in_a_text_is_not_readable() -> None:
    encoded = lookup("persistent://public/default/XX")
    assert not is_readable(encoded.replace(b"XX", b"\xff\xfe"))
    assert not is_readable(encoded.replace(b"XX", b"\xc3\x28"))


def test_a_missing_required_field_is_no_matter_of_text() -> None:
    assert is_readable(BaseCommand(type=BaseCommand.PING).SerializePartialToString())
