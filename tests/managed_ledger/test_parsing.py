"""Protobuf messages in the metadata store and in cursor ledgers."""

import pytest

from managed_ledger.errors import BrokenMetadata
from managed_ledger.parsing import parse_into
from wire.generated.managed_ledger_pb2 import ManagedCursorInfo, ManagedLedgerInfo


def test_a_value_fills_the_message() -> None:
    written = ManagedCursorInfo(cursors_ledger_id=-1, mark_delete_ledger_id=3, mark_delete_entry_id=4)
    read = ManagedCursorInfo()
    parse_into(read, written.SerializeToString(), "cursor")
    assert read == written


def test_bytes_that_are_no_message_are_refused_with_the_name() -> None:
    with pytest.raises(BrokenMetadata, match="topic: its ManagedLedgerInfo cannot be read"):
        parse_into(ManagedLedgerInfo(), b"\xff\xff\xff", "topic")


def test_a_message_without_a_required_field_is_refused() -> None:
    with pytest.raises(BrokenMetadata, match="cursor: its ManagedCursorInfo lacks a required field"):
        parse_into(ManagedCursorInfo(), b"", "cursor")
