"""The tree against a naive twin: a dict of paths, copied before each commit and put back when it fails."""

import copy
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metadata.store import (
    ANY_VERSION,
    MUST_NOT_EXIST,
    BadVersion,
    Change,
    Delete,
    MetadataError,
    NoNode,
    NotEmpty,
    Operation,
    Put,
)
from metadata.tree import DURABLE, Node, Tree


@dataclass
class TwinNode:
    value: bytes
    version: int
    session: int


@dataclass
class Twin:
    """Naive twin: every question scans everything."""

    nodes: dict[str, TwinNode] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(p[len(prefix) :] for p in self.nodes if p.startswith(prefix) and "/" not in p[len(prefix) :])

    def commit(self, operations: list[Operation], session: int) -> list[tuple[str, int] | None] | type[MetadataError]:
        nodes, made = copy.deepcopy(self.nodes), dict(self.made)
        answers: list[tuple[str, int] | None] = []
        for operation in operations:
            answer = self.put(operation, session) if isinstance(operation, Put) else self.remove(operation)
            if isinstance(answer, type):
                self.nodes, self.made = nodes, made
                return answer
            answers.append(answer)
        return answers

    def put(self, put: Put, session: int) -> tuple[str, int] | type[MetadataError]:
        path, expected = put.path, put.expected_version
        parent = path[: path.rindex("/")]
        if put.sequential:
            path, expected = f"{path}{self.made.get(parent, 0):010d}", MUST_NOT_EXIST
        node = self.nodes.get(path)
        if expected != ANY_VERSION and expected != (node.version if node else MUST_NOT_EXIST):
            return BadVersion
        if node:
            node.value, node.version = put.value, node.version + 1
            return path, node.version
        steps = path.split("/")[1:]
        ancestors = ["/" + "/".join(steps[:depth]) for depth in range(1, len(steps))]
        if any(self.nodes[ancestor].session for ancestor in ancestors if ancestor in self.nodes):
            return MetadataError
        for made in [*ancestors, path]:
            if made not in self.nodes:
                above = made[: made.rindex("/")]
                self.made[above] = self.made.get(above, 0) + 1
                is_last = made == path
                self.nodes[made] = TwinNode(put.value if is_last else b"", 0, session if is_last and put.ephemeral else 0)
        return path, 0

    def remove(self, delete: Delete) -> type[MetadataError] | None:
        node = self.nodes.get(delete.path)
        if node is None:
            return NoNode
        if delete.expected_version not in (ANY_VERSION, node.version):
            return BadVersion
        if self.children(delete.path):
            return NotEmpty
        del self.nodes[delete.path]
        self.made.pop(delete.path, None)
        return None


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
VERSIONS = st.sampled_from([ANY_VERSION, ANY_VERSION, MUST_NOT_EXIST, 0, 1, 2])
OPERATIONS = st.one_of(
    st.builds(Put, PATHS, st.binary(max_size=2), VERSIONS, st.booleans(), st.booleans()),
    st.builds(Put, PATHS, st.binary(max_size=2)),
    st.builds(Delete, PATHS, VERSIONS),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 2), st.lists(OPERATIONS, min_size=1, max_size=4)),
        st.tuples(st.integers(1, 2), st.just([])),
    ),
    max_size=25,
)


def outcome(
    tree: Tree, operations: list[Operation], session: int, now_ms: int
) -> list[tuple[str, int] | None] | type[MetadataError]:
    try:
        stats = tree.apply(operations, session, now_ms).stats
    except MetadataError as error:
        return type(error)
    return [(stat.path, stat.version) if stat else None for stat in stats]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_the_tree_and_its_naive_twin_agree(steps: list[tuple[int, list[Operation]]]) -> None:
    tree, twin = Tree(), Twin()
    assert (tree.open_session(), tree.open_session()) == (1, 2)
    for moment, (session, operations) in enumerate(steps):
        if operations:
            expected = twin.commit(operations, session)
            assert outcome(tree, operations, session, moment) == expected
        else:
            tree.end_session(session, moment)
            twin.nodes = {path: node for path, node in twin.nodes.items() if node.session != session}
        tree.check_invariants()
        for path, node in twin.nodes.items():
            found = tree.get(path)
            assert found is not None
            assert (found.value, found.stat.version) == (node.value, node.version)
            assert tree.children(path) == twin.children(path)
        assert tree.children("/") == twin.children("/")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_tree_loaded_from_its_changes_gives_no_number_twice(steps: list[tuple[int, list[Operation]]]) -> None:
    tree = Tree()
    rows: dict[str, Node | None] = {}
    counters: dict[str, int] = {}
    numbered: set[str] = set()
    for session, operations in steps:
        try:
            applied = tree.apply(operations, session, 0) if operations else tree.end_session(session, 0)
        except MetadataError:
            continue
        for change in applied.changes:
            rows[change.path] = change.after
        counters |= {change.parent: change.after for change in applied.counters}
        numbered |= {
            stat.path
            for stat, put in zip(applied.stats, operations, strict=False)
            if isinstance(put, Put) and put.sequential and stat
        }
    kept = {path: node for path, node in rows.items() if node is not None and node.session == DURABLE}
    loaded = Tree.loaded(kept.items(), counters)
    loaded.check_invariants()
    for path in kept:
        assert loaded.get(path) == tree.get(path)
    for parent in ("/", "/a"):
        if parent == "/" or (loaded.exists(parent) and tree.exists(parent)):
            (stat,) = loaded.apply([Put(parent.rstrip("/") + "/a", b"", sequential=True)], DURABLE, 0).stats
            assert stat is not None
            gone_and_made_again = parent not in ("/",) and counters.get(parent) == 0
            assert gone_and_made_again or stat.path not in numbered


def test_notifications_tell_of_made_parents_and_of_each_change() -> None:
    tree = Tree()
    told = tree.apply([Put("/a/b", b"1"), Put("/a/b", b"2"), Delete("/a/b")], DURABLE, 0).notifications()
    assert [(each.change, each.path) for each in told] == [
        (Change.CREATED, "/a"),
        (Change.CREATED, "/a/b"),
        (Change.MODIFIED, "/a/b"),
        (Change.DELETED, "/a/b"),
    ]


def test_a_failed_commit_leaves_nothing_not_even_a_number() -> None:
    tree = Tree()
    tree.apply([Put("/seq/n-", b"", sequential=True)], DURABLE, 0)
    with pytest.raises(NoNode):
        tree.apply([Put("/seq/n-", b"", sequential=True), Put("/x/y", b""), Delete("/no")], DURABLE, 0)
    assert tree.children("/") == ["seq"]
    (stat,) = tree.apply([Put("/seq/n-", b"", sequential=True)], DURABLE, 5).stats
    assert stat is not None
    assert (stat.path, stat.created_ms) == ("/seq/n-0000000001", 5)


def test_the_root_cannot_be_written_or_deleted() -> None:
    for operation in (Put("/", b""), Delete("/")):
        with pytest.raises(MetadataError):
            Tree().apply([operation], DURABLE, 0)
