"""Every operation of the protocol is counted under BookKeeper's name, or is one that is not counted."""

from typing import get_args

import pytest

from bookie.server.request_stats import NAMES, RequestStats
from tests.bookie.runs import KEY, sealed
from wire.bookie.requests import (
    Add,
    Authenticate,
    BatchRead,
    DescribeDisk,
    Force,
    ListEntries,
    LongPoll,
    Operation,
    Read,
    ReadLac,
    Rejected,
    StartTls,
    WriteLac,
)

COUNTED: dict[str, tuple[Operation, ...]] = {
    "ADD_ENTRY": (Add(sealed(1, 0), KEY, False), Add(sealed(1, 0), KEY, True)),
    "READ_ENTRY": (Read(1, 0), BatchRead(1, 0, 1, 10, 1000)),
    "READ_ENTRY_FENCE": (Read(1, -1, KEY), BatchRead(1, 0, 1, 10, 1000, KEY)),
    "READ_ENTRY_LONG_POLL": (LongPoll(1, 0, 100, False),),
    "WRITE_LAC": (WriteLac(1, 0, KEY, b""),),
    "READ_LAC": (ReadLac(1),),
    "FORCE_LEDGER": (Force(1),),
    "GET_BOOKIE_INFO": (DescribeDisk(True, True),),
    "GET_LIST_OF_ENTRIES_OF_LEDGER": (ListEntries(1),),
}
UNCOUNTED: tuple[Operation, ...] = (Authenticate("plugin"), StartTls(), Rejected(b"", "no such version"))


def test_every_operation_of_the_protocol_is_one_of_these() -> None:
    tried = {type(each) for operations in (*COUNTED.values(), UNCOUNTED) for each in operations}
    assert tried == set(get_args(Operation))
    assert set(COUNTED) == set(NAMES)


@pytest.mark.parametrize("name", COUNTED)
def test_an_operation_is_counted_under_its_name_alone(name: str) -> None:
    stats = RequestStats()
    for operation in COUNTED[name]:
        counted = stats.of(operation)
        assert counted is not None
        counted.record(0.001)
    assert {each: found.succeeded.count for each, found in stats.operations.items() if found.succeeded.count} == {
        name: len(COUNTED[name])
    }


@pytest.mark.parametrize("operation", UNCOUNTED, ids=lambda each: type(each).__name__)
def test_handshakes_and_rejected_requests_are_not_counted(operation: Operation) -> None:
    assert RequestStats().of(operation) is None
