"""Outcome of a write whose answer was lost."""

import pytest

from metadata.store import MUST_NOT_EXIST, Delete, Put
from metadata.zookeeper.requests import Found, NodeStat
from metadata.zookeeper.write_outcome import Outcome, settle


def stat(version: int = 0, created: int = 1, modified: int = 1, owner: int = 0) -> NodeStat:
    return NodeStat(created, modified, version, 0, 0, owner)


@pytest.mark.parametrize(
    ("operation", "found", "outcome"),
    [
        (Put("/a", b"2", 4), Found(b"2", stat(5)), Outcome.DONE),
        (Put("/a", b"2", 4), Found(b"1", stat(4)), Outcome.NOT_DONE),
        (Put("/a", b"2", 4), Found(b"x", stat(5)), Outcome.UNKNOWN),
        (Put("/a", b"2", 4), Found(b"2", stat(6)), Outcome.UNKNOWN),
        (Put("/a", b"2", 4), None, Outcome.UNKNOWN),
        (Put("/a", b"2", MUST_NOT_EXIST), None, Outcome.NOT_DONE),
        (Put("/a", b"2", MUST_NOT_EXIST), Found(b"2", stat()), Outcome.DONE),
        (Put("/a", b"2", MUST_NOT_EXIST, ephemeral=True), Found(b"2", stat(owner=7)), Outcome.DONE),
        (Put("/a", b"2", MUST_NOT_EXIST, ephemeral=True), Found(b"2", stat(owner=8)), Outcome.NOT_DONE),
        (Put("/a", b"2"), Found(b"1", stat(9)), Outcome.NOT_DONE),
        (Put("/a-", b"", sequential=True), None, Outcome.UNKNOWN),
        (Delete("/a", 3), None, Outcome.DONE),
        (Delete("/a", 3), Found(b"", stat(3)), Outcome.NOT_DONE),
        (Delete("/a", 3), Found(b"", stat(0)), Outcome.UNKNOWN),
    ],
)
def test_the_node_that_is_found_decides_the_outcome_of_a_write(
    operation: Put | Delete, found: Found | None, outcome: Outcome
) -> None:
    assert settle([operation], {operation.path: found}, session_id=7).outcome is outcome
