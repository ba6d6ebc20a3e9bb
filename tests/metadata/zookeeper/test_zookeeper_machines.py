"""The pure parts of the store on ZooKeeper: sessions, claims, plans, outcomes, order, mirror, bytes, connect strings."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.claim import (
    ClaimMachine,
    DeleteOurs,
    Failed,
    Given,
    Hold,
    Made,
    Make,
    MakeLater,
    NodeGone,
    SessionChanged,
    Taken,
    TellHold,
    Wanted,
)
from metadata.sessions import SessionEvent
from metadata.store import MUST_NOT_EXIST, Change, Delete, MetadataError, Notification, Operation, Put
from metadata.zookeeper.commit_plan import Beliefs, learn, make_plan
from metadata.zookeeper.connect_string import ServiceUri, parse_service_uri, servers_of
from metadata.zookeeper.kazoo_wire import MultiRequest
from metadata.zookeeper.requests import Code, Create, Done, Found, Listed, NodeStat, Refused, Remove, SetData
from metadata.zookeeper.session import (
    Closed,
    Connected,
    Disconnected,
    Expired,
    OpenNext,
    Resume,
    SessionMachine,
    State,
    Tell,
    Ticked,
)
from metadata.zookeeper.watch_mirror import NOTHING_IS_NEWS, Mirror
from metadata.zookeeper.write_order import Turn, WriteOrder
from metadata.zookeeper.write_outcome import Outcome, settle


def stat(version: int = 0, created: int = 1, modified: int = 1, owner: int = 0) -> NodeStat:
    return NodeStat(created, modified, version, 0, 0, owner)


def told(machine: SessionMachine, *events: Connected | Disconnected | Expired | Ticked | Closed) -> list[object]:
    return [effect for event in events for effect in machine.handle(event)]


def test_a_short_cut_is_told_as_lost_connection_and_reconnection() -> None:
    machine = SessionMachine()
    assert told(machine, Connected(), Disconnected(), Ticked(3.2, 4.0), Connected()) == [
        Resume(),
        Tell(SessionEvent.CONNECTION_LOST),
        Resume(),
        Tell(SessionEvent.RECONNECTED),
    ]


def test_silence_counts_as_loss_before_the_server_could_say_so_and_the_expiry_is_not_told_twice() -> None:
    machine = SessionMachine()
    told(machine, Connected())
    assert told(machine, Ticked(3.4, 4.0), Disconnected(), Expired()) == [Tell(SessionEvent.SESSION_LOST), OpenNext()]
    assert not machine.can_send
    assert told(machine, Connected()) == [Resume(), Tell(SessionEvent.SESSION_REESTABLISHED)]


def test_a_session_presumed_lost_that_is_heard_again_is_reestablished() -> None:
    machine = SessionMachine()
    told(machine, Connected(), Ticked(3.4, 4.0))
    assert machine.can_send
    assert told(machine, Ticked(0.1, 4.0)) == [Tell(SessionEvent.SESSION_REESTABLISHED)]
    told(machine, Closed())
    assert told(machine, Disconnected(), Connected(), Expired()) == []
    assert machine.state is State.CLOSED


def test_a_claim_that_found_a_node_which_went_meanwhile_asks_again() -> None:
    """The answer that somebody has it and the news that it went may be told in either order."""
    machine = ClaimMachine(b"me")
    assert machine.handle(Wanted()) == [TellHold(Hold.TAKING), Make(1)]
    assert machine.handle(NodeGone()) == []
    assert machine.handle(Taken(1, b"other")) == [Make(2)]
    assert machine.handle(Taken(2, b"other")) == [TellHold(Hold.BUSY, b"other")]
    assert machine.handle(NodeGone()) == [TellHold(Hold.TAKING), Make(3)]
    assert machine.handle(Made(3)) == [TellHold(Hold.HELD, b"me")]


def test_a_node_that_was_made_after_the_claim_was_given_up_is_taken_away() -> None:
    machine = ClaimMachine(b"me")
    machine.check_invariants()
    machine.handle(Wanted())
    machine.handle(Given())
    assert machine.handle(Made(1)) == [DeleteOurs()]


def test_a_late_answer_takes_away_no_node_of_a_claim_that_is_wanted_again() -> None:
    machine = ClaimMachine(b"me")
    machine.handle(Wanted())
    machine.handle(Given())
    assert machine.handle(Wanted()) == [TellHold(Hold.TAKING), Make(3)]
    assert machine.handle(Made(1)) == []


def test_a_claim_takes_away_what_its_earlier_session_left_and_keeps_what_it_just_made() -> None:
    machine = ClaimMachine(b"me")
    machine.handle(Wanted())
    assert machine.handle(Taken(1, b"me")) == [Make(2, after_delete=True)]
    assert machine.handle(Made(2)) == [TellHold(Hold.HELD, b"me")]
    assert machine.handle(NodeGone()) == [Make(3)]  # old news, perhaps
    assert machine.handle(Taken(3, b"me", is_ours=True)) == []
    assert machine.handle(NodeGone()) == [Make(4)]
    assert machine.handle(Taken(4, b"other")) == [TellHold(Hold.BUSY, b"other")]


def test_a_claim_is_not_held_from_the_loss_of_the_session_until_it_is_made_again() -> None:
    machine = ClaimMachine(b"me")
    machine.handle(Wanted())
    machine.handle(Made(1))
    assert machine.handle(SessionChanged(SessionEvent.CONNECTION_LOST)) == []
    assert machine.handle(SessionChanged(SessionEvent.SESSION_LOST)) == [TellHold(Hold.TAKING)]
    (make,) = machine.handle(SessionChanged(SessionEvent.SESSION_REESTABLISHED))
    assert isinstance(make, Make)
    assert machine.handle(Failed(make.attempt)) == [MakeLater(make.attempt + 1)]
    assert machine.handle(Given())[0] == TellHold(Hold.FREE)
    machine.check_invariants()


def test_a_plan_makes_the_parents_that_are_missing_once() -> None:
    operations: list[Operation] = [
        Put("/a/b/c", b"1"),
        Put("/a/b/d", b"2", MUST_NOT_EXIST),
        Delete("/a/b/c", 3),
        Put("/a/b/d", b"3", 0),
    ]
    beliefs: Beliefs = {}
    plan = make_plan(operations, beliefs)
    assert learn(plan, operations, Refused(Code.NO_NODE, 0, ""), beliefs) == ["/a/b", "/a"]
    beliefs |= {"/a/b": False, "/a": False}
    plan = make_plan(operations, beliefs)
    assert plan.steps == [
        Create("/a", b""),
        Create("/a/b", b""),
        Create("/a/b/c", b"1"),
        Create("/a/b/d", b"2"),
        Remove("/a/b/c", 3),
        SetData("/a/b/d", b"3", 0),
    ]
    done = [Done(step.path, stat()) for step in plan.steps]
    assert [each and each.path for each in plan.stats(done)] == ["/a/b/c", "/a/b/d", "/a/b/c", "/a/b/d"]


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
def test_what_is_there_tells_what_became_of_a_write(operation: Put | Delete, found: Found | None, outcome: Outcome) -> None:
    assert settle([operation], {operation.path: found}, session_id=7).outcome is outcome


PATHS = st.lists(st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f", "/ab"]), min_size=1, max_size=3)


def are_related(one: frozenset[str], other: frozenset[str]) -> bool:
    return any(a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in one for b in other)


@given(st.lists(PATHS, max_size=12), st.randoms(use_true_random=False))
def test_writes_run_beside_each_other_unless_they_are_related_and_then_in_order(asked: list[list[str]], rng) -> None:  # type: ignore[no-untyped-def]
    order = WriteOrder()
    turns = [order.join(paths) for paths in asked]
    left: list[Turn] = []
    while len(left) < len(turns):
        waiting = [turn for turn in turns if turn not in left]
        for turn in waiting:
            earlier = waiting[: waiting.index(turn)]
            assert turn.has_come == (not any(are_related(turn.paths, other.paths) for other in earlier))
        turn = rng.choice([turn for turn in waiting if turn.has_come])
        ready = order.leave(turn)
        left.append(turn)
        assert all(each.has_come for each in ready)
    assert len(order) == 0


def walked(mirror: Mirror, tree: dict[str, Listed], seen_zxid: int) -> list[tuple[Change, str]]:
    walk = mirror.begin_walk("/w", seen_zxid)
    news: list[Notification] = []
    while walk.to_list:
        path = walk.to_list.pop()
        news += mirror.listed(walk, path, tree.get(path))
    news += mirror.end_walk(walk)
    return [(each.change, each.path) for each in news]


def test_a_walk_tells_what_differs_from_what_was_known() -> None:
    mirror = Mirror()
    before = {"/w": Listed(("a", "b", "c"), stat()), **{f"/w/{name}": Listed((), stat()) for name in "abc"}}
    assert walked(mirror, before, NOTHING_IS_NEWS) == []
    mirror.changed(Change.CREATED, "/w/seen")
    after = {
        "/w": Listed(("a", "b", "n", "seen"), stat()),
        "/w/a": Listed((), stat(modified=20)),
        "/w/b": Listed((), stat(created=21, modified=21)),
        "/w/n": Listed((), stat(created=22, modified=22)),
        "/w/seen": Listed((), stat(created=9, modified=9)),
    }
    assert sorted(walked(mirror, after, 10), key=str) == sorted(
        [
            (Change.DELETED, "/w/c"),
            (Change.MODIFIED, "/w/a"),
            (Change.DELETED, "/w/b"),
            (Change.CREATED, "/w/b"),
            (Change.CREATED, "/w/n"),
        ],
        key=str,
    )
    assert walked(mirror, {}, 30)[-1] == (Change.DELETED, "/w")
    assert len(mirror) == 0


def test_what_a_read_found_is_told_when_it_goes_also_if_the_first_walk_never_came_to_it() -> None:
    mirror = Mirror()
    mirror.begin_walk("/w", NOTHING_IS_NEWS)  # and the connection breaks
    mirror.seen("/w/goes/deep")
    mirror.seen("/w/stays", ["a", "b"])
    mirror.seen("/elsewhere", ["a"])
    after = {"/w": Listed(("stays",), stat()), "/w/stays": Listed(("a",), stat()), "/w/stays/a": Listed((), stat(modified=20))}
    assert sorted(walked(mirror, after, 10), key=str) == sorted(
        [(Change.DELETED, "/w/goes/deep"), (Change.DELETED, "/w/stays/b"), (Change.MODIFIED, "/w/stays/a")], key=str
    )
    assert (len(mirror), walked(mirror, after, 20)) == (3, [])


def test_a_child_told_of_before_its_parent_was_found_to_be_another_is_told_of_again() -> None:
    mirror = Mirror()
    before = {"/w": Listed(("a",), stat()), "/w/a": Listed((), stat())}
    walked(mirror, before, NOTHING_IS_NEWS)
    walk = mirror.begin_walk("/w", 10)
    mirror.listed(walk, "/w", Listed(("a",), stat()))
    assert mirror.changed(Change.CREATED, "/w/a/b") == [Notification(Change.CREATED, "/w/a/b")]
    news = mirror.listed(walk, "/w/a", Listed(("b",), stat(created=20)))
    news += mirror.listed(walk, "/w/a/b", Listed((), stat(created=21)))
    assert news[-1] == Notification(Change.CREATED, "/w/a/b")
    assert mirror.end_walk(walk) == []


def test_a_multi_has_the_bytes_of_zookeeper() -> None:
    """Header (type, done, error), path, data, ACL world:anyone with all rights, flags; lengths before strings."""
    request = MultiRequest("/root", (Create("/a", b"v", ephemeral=True), SetData("/a", b"w", 3), Remove("/a")))
    create = (
        b"\0\0\0\x07/root/a" + b"\0\0\0\x01v" + bytes.fromhex("00000001 0000001f 00000005") + b"world" + b"\0\0\0\x06anyone"
    )
    expected = struct.pack(">i?i", 15, False, -1) + create + struct.pack(">i", 1)
    expected += struct.pack(">i?i", 5, False, -1) + b"\0\0\0\x07/root/a" + b"\0\0\0\x01w" + struct.pack(">i", 3)
    expected += struct.pack(">i?i", 2, False, -1) + b"\0\0\0\x07/root/a" + struct.pack(">i", -1)
    assert request.serialize() == expected + struct.pack(">i?i", -1, True, -1)


def test_connect_strings_are_those_of_apaches_settings() -> None:
    assert servers_of("zk:h1:2181,h2/pulsar/") == "h1:2181,h2:2181/pulsar"
    assert servers_of("h1:2182") == "h1:2182"
    assert parse_service_uri("zk+hierarchical://h1:2181;h2:2181/ledgers") == ServiceUri(
        "h1:2181,h2:2181", "/ledgers", "hierarchical"
    )
    assert parse_service_uri("metadata-store:zk:h1:2181/my/ledgers") == ServiceUri("h1:2181/my", "/ledgers", "hierarchical")
    for wrong in ("zk:", "zk:h 1", "zk:h:99999", "h1:2181,,h2"):
        with pytest.raises(MetadataError, match="expected zk:"):
            servers_of(wrong)
    with pytest.raises(MetadataError, match="metadataServiceUri"):
        parse_service_uri("etcd:h1")
