"""Plan of a commit."""

from metadata.store import MUST_NOT_EXIST, Delete, Operation, Put
from metadata.zookeeper.commit_plan import Beliefs, learn, make_plan
from metadata.zookeeper.requests import Code, Create, Done, NodeStat, Refused, Remove, SetData


def stat(version: int = 0, created: int = 1, modified: int = 1, owner: int = 0) -> NodeStat:
    return NodeStat(created, modified, version, 0, 0, owner)


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
