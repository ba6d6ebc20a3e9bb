"""A group of commits writes the last state of each path, and answers each of its calls once."""

import asyncio
from collections.abc import Sequence
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from metadata.groups import Call, Group
from metadata.store import Delete, MetadataError, Operation, Put, Stat, StoreFull
from metadata.tree import DURABLE, Node, Tree
from tests.simulation.worlds import World, run

PATHS = st.sampled_from(["/a", "/b", "/b/c"])
OPERATIONS = st.lists(st.builds(Put, PATHS, st.binary(max_size=2), ephemeral=st.booleans()) | st.builds(Delete, PATHS))


NO_ANSWER = cast("asyncio.Future[list[Stat | None]]", None)


def grouped(tree: Tree, session: int, operations: Sequence[Operation]) -> Group:
    """Group of those of these operations that the tree allows, each a commit."""
    group = Group()
    for operation in operations:
        try:
            applied = tree.apply([operation], session, 1)
        except MetadataError:
            continue
        group.add(Call([operation], NO_ANSWER), applied)
    return group


def nodes_of(tree: Tree) -> dict[str, bytes]:
    found = {path: tree.get(path) for path in ("/a", "/b", "/b/c")}
    return {path: node.value for path, node in found.items() if node is not None}


@given(OPERATIONS, OPERATIONS)
def test_the_rows_of_a_group_make_the_durable_nodes_of_the_tree(before: list[Operation], now: list[Operation]) -> None:
    """A store that starts again has the rows of all groups, and none of the nodes of a session."""
    tree, rows = Tree(), dict[str, Node]()
    session = tree.open_session()
    for operations in (before, now):
        group, count = grouped(tree, session, operations), len(rows)
        for path, node in group.nodes.items():
            if node is None:
                rows.pop(path, None)
            else:
                assert node.session == DURABLE
                rows[path] = node
        assert group.nodes_added == len(rows) - count
        assert group.grows == (len(rows) > count)
    tree.end_session(session, 2)
    assert {path: node.value for path, node in rows.items()} == nodes_of(tree)


def test_a_node_of_a_session_has_no_row() -> None:
    tree = Tree()
    assert grouped(tree, tree.open_session(), [Put("/a", b"", ephemeral=True)]).nodes == {}


def test_the_paths_that_a_group_touched_are_those_of_its_nodes_and_their_parents() -> None:
    group = grouped(Tree(), DURABLE, [Put("/b", b""), Put("/b/c", b"")])
    assert group.touched == {"/", "/b", "/b/c"}


def test_each_call_is_answered_once_and_one_that_nobody_waits_for_is_passed_over() -> None:
    async def scenario(world: World) -> None:
        tree, group = Tree(), Group()
        calls = [Call([Put(path, b"")], world.loop.create_future()) for path in ("/a", "/b", "/c")]
        for call in calls:
            group.add(call, tree.apply(call.operations, DURABLE, 1))
        end = group.end(world.loop)
        calls[0].answer.cancel()
        calls[1].fail(StoreFull("no room"))
        group.answer()
        assert calls[0].answer.cancelled()
        assert isinstance(calls[1].answer.exception(), StoreFull)
        (stat,) = calls[2].answer.result()
        assert stat is not None
        assert (stat.path, await end) == ("/c", True)

    run(scenario)


def test_a_group_that_is_taken_back_says_so_and_leaves_its_calls_to_be_answered_elsewhere() -> None:
    async def scenario(world: World) -> None:
        group, call = Group(), Call([Put("/a", b"")], world.loop.create_future())
        group.add(call, Tree().apply(call.operations, DURABLE, 1))
        ends = group.end(world.loop), group.end(world.loop)
        ends[0].cancel()
        group.taken_back()
        assert not await ends[1]
        assert not call.answer.done()

    run(scenario)
