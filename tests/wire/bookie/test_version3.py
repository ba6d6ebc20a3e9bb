"""Answers of version 3."""

import pytest

from tests.wire.bookie.bookie_samples import KEY, entry
from tests.wire.bookie.version3_samples import operation_of, request
from wire.bookie.codes import BookieCode
from wire.bookie.requests import Rejected
from wire.generated import bookie_protocol_pb2 as api

LAC_FENCE_READ = bytes.fromhex(
    "0a06080310011805a20626080710ffffffffffffffffff011a140000000000000000000000000000000000000000a00601"
)
"""Version 3, a fencing read of the last entry of ledger 7 with txnId 5 and a key of zeros."""


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (request(api.START_TLS), api.EBADREQ),
        (request(api.RANGE_READ_ENTRY), api.EBADREQ),
        (request(api.ADD_ENTRY), api.EBADREQ),
        (
            request(api.ADD_ENTRY, addRequest=api.AddRequest(ledgerId=7, entryId=6, masterKey=KEY, body=entry(7, 5))),
            api.EBADREQ,
        ),
        (
            request(api.READ_ENTRY, readRequest=api.ReadRequest(ledgerId=7, entryId=6, flag=api.ReadRequest.ENTRY_PIGGYBACK)),
            api.EBADREQ,
        ),
        (
            request(api.READ_ENTRY, readRequest=api.ReadRequest(ledgerId=7, entryId=6, flag=api.ReadRequest.FENCE_LEDGER)),
            api.EBADREQ,
        ),
        (request(api.WRITE_LAC, writeLacRequest=api.WriteLacRequest(ledgerId=7, lac=6, masterKey=KEY, body=b"")), api.EBADREQ),
        (LAC_FENCE_READ.replace(b"\x08\x03\x10\x01", b"\x08\x02\x10\x01"), api.EBADVERSION),
    ],
)
def test_version_3_refuses_with_its_codes(data: bytes, status: int) -> None:
    operation = operation_of(data)
    assert isinstance(operation, Rejected)
    assert api.Response.FromString(operation.answer[4:]).status == status


def test_every_code_has_its_status_of_version_3() -> None:
    names = {api.StatusCode.Name(number) for number in api.StatusCode.values()}
    assert names == {code.name for code in BookieCode}
