"""Errors of a peer."""

import pytest

from wire.errors import ChecksumMismatch, MalformedPayload, RemoteError, UnknownCommand, other_protocol


@pytest.mark.parametrize("first", [b"GET ", b"POST", b"PRI "])
def test_http_on_a_port_of_the_binary_protocol_is_named(first: bytes) -> None:
    assert other_protocol(first) == ": this is HTTP, which has a port of its own"


def test_tls_is_named_and_other_bytes_are_not() -> None:
    assert "TLS" in other_protocol(b"\x16\x03\x01\x02")
    assert other_protocol(b"\x16\x02\x01\x02") == ""
    assert other_protocol(b"\x00\x00\x00\x10") == ""


def test_a_checksum_mismatch_is_a_malformed_payload_and_every_error_has_its_reason() -> None:
    error = ChecksumMismatch("expected 1, found 2")
    assert isinstance(error, MalformedPayload)
    assert isinstance(error, RemoteError)
    assert error.reason == str(error) == "expected 1, found 2"
    assert UnknownCommand(77).number == 77
    assert "77" in UnknownCommand(77).reason
