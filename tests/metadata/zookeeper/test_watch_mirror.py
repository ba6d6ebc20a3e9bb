"""Mirror of watched nodes."""

from metadata.store import Change, Notification
from metadata.zookeeper.requests import Listed, NodeStat
from metadata.zookeeper.watch_mirror import NOTHING_IS_NEWS, Mirror


def stat(version: int = 0, created: int = 1, modified: int = 1, owner: int = 0) -> NodeStat:
    return NodeStat(created, modified, version, 0, 0, owner)


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


def test_changes_to_nodes_that_a_read_found_are_told_though_the_first_walk_missed_them() -> None:
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
