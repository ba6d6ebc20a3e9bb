"""Version 3 of the bookie protocol: a request that Apache's client (4.17.3) wrote, and refusals of bad ones."""

import pytest

from tests.wire.bookie.bookie_samples import KEY, entry
from tests.wire.bookie.version3_samples import LAC_FENCE_READ, operation_of, request
from wire.bookie import version3
from wire.bookie.codes import BookieCode
from wire.bookie.requests import Read, Rejected
from wire.generated import bookie_protocol_pb2 as api


def test_apaches_fencing_read_of_version_3_is_read() -> None:
    found = version3.decode(LAC_FENCE_READ)
    assert found is not None
    assert found.operation == Read(7, -1, bytes(20))
    response = api.Response.FromString(found.answers.read(BookieCode.ENOENTRY, 7, -1)[4:])
    assert (response.header.txnId, response.header.operation, response.status) == (5, api.READ_ENTRY, api.ENOENTRY)
    assert (response.readResponse.status, response.readResponse.entryId) == (api.ENOENTRY, -1)


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
