"""Requests of version 3."""

from array import array

from tests.wire.bookie.bookie_samples import KEY, entry
from tests.wire.bookie.version3_samples import operation_of, request
from wire.bookie.requests import Add, DescribeDisk, LongPoll, StartTls, WriteLac
from wire.bookie.version3_requests import add_frames
from wire.generated import bookie_protocol_pb2 as api
from wire.run import EntryRun


def test_requests_of_version_3_are_read() -> None:
    one = entry(7, 5)
    body = api.AddRequest(ledgerId=7, entryId=5, masterKey=KEY, body=one, flag=api.AddRequest.RECOVERY_ADD)
    operation = operation_of(request(api.ADD_ENTRY, addRequest=body))
    assert isinstance(operation, Add)
    assert (operation.entries.buffer, operation.master_key, operation.recovery) == (one, KEY, True)
    poll = api.ReadRequest(ledgerId=7, entryId=-1, previousLAC=4, timeOut=100, flag=api.ReadRequest.ENTRY_PIGGYBACK)
    assert operation_of(request(api.READ_ENTRY, readRequest=poll)) == LongPoll(7, 4, 100, True)
    lac = api.WriteLacRequest(ledgerId=7, lac=4, masterKey=KEY, body=(7).to_bytes(8) + (4).to_bytes(8) + b"crc!")
    assert operation_of(request(api.WRITE_LAC, writeLacRequest=lac)) == WriteLac(7, 4, KEY, lac.body)
    info = api.GetBookieInfoRequest(requested=2)
    assert operation_of(request(api.GET_BOOKIE_INFO, getBookieInfoRequest=info)) == DescribeDisk(False, True)
    assert operation_of(request(api.START_TLS, startTLSRequest=api.StartTLSRequest())) == StartTls()


def test_a_recovery_asks_with_priority_so_that_a_full_bookie_takes_its_adds() -> None:
    run = EntryRun(7, 5, entry(7, 5), array("I", (0, len(entry(7, 5)))))
    for recovery, priority in ((True, 100), (False, 0)):
        asked = api.Request.FromString(add_frames(run, 1, KEY, recovery=recovery)[4:])
        assert asked.header.priority == priority
        assert asked.addRequest.HasField("flag") is recovery
