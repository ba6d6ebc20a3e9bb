"""A commit as ZooKeeper's steps. Pure.

The contract makes missing parents and knows "write it whether it is there or not"; ZooKeeper knows neither. So a plan is
made on beliefs about the tree (at first: parents are there, targets are not), sent as one multi, and where ZooKeeper
refuses for a wrong belief, `learn` corrects the belief and the next plan is made. A refusal for another reason is the caller's
error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from metadata.paths import ROOT, check_path, split_path
from metadata.store import (
    ANY_VERSION,
    MUST_NOT_EXIST,
    BadVersion,
    Delete,
    MetadataError,
    NoNode,
    NotEmpty,
    Operation,
    Put,
    Stat,
)
from metadata.zookeeper.requests import ANY, Code, Create, Done, NodeStat, Refused, Remove, SetData, Step

Beliefs = dict[str, bool]
"""Whether a path is there; what is not in it is believed by default."""
PARENT = -1
"""The operation of a step that only makes a parent."""
_STEP_BYTES = 64
"""Generous estimate of a step's bytes beside path and value: header, flags, version and the open ACL."""


@dataclass(slots=True)
class Plan:
    """Steps in order, and for each the index of its operation (PARENT: none)."""

    steps: list[Step] = field(default_factory=list)
    operations: list[int] = field(default_factory=list)

    def add(self, step: Step, operation: int) -> None:
        self.steps.append(step)
        self.operations.append(operation)

    @property
    def size_bytes(self) -> int:
        values = sum(len(step.value) for step in self.steps if not isinstance(step, Remove))
        return values + sum(len(step.path.encode()) + _STEP_BYTES for step in self.steps)

    def stats(self, done: Sequence[Done]) -> list[Stat | None]:
        """The stat of each operation, as `MetadataStore.commit` returns it."""
        return [stat_of(each.path, each.stat) for each, index in zip(done, self.operations, strict=True) if index != PARENT]


def stat_of(path: str, stat: NodeStat | None) -> Stat | None:
    return None if stat is None else Stat(path, stat.version, stat.created_ms, stat.modified_ms)


def make_plan(operations: Sequence[Operation], beliefs: Beliefs) -> Plan:
    """MetadataError for a path that is none, and for the root."""
    plan = Plan()
    there = dict(beliefs)
    for index, operation in enumerate(operations):
        _check(operation)
        if isinstance(operation, Delete):
            plan.add(Remove(operation.path, _version(operation.expected_version)), index)
            there[operation.path] = False
        elif operation.sequential or operation.expected_version == MUST_NOT_EXIST or _is_new(operation, there):
            _add_create(plan, operation, index, there)
        else:
            plan.add(SetData(operation.path, operation.value, _version(operation.expected_version)), index)
    return plan


def _check(operation: Operation) -> None:
    path = operation.path
    check_path(f"{path}0" if isinstance(operation, Put) and operation.sequential else path)
    if path == ROOT and not (isinstance(operation, Put) and operation.sequential):
        raise MetadataError("the root cannot be written or deleted")


def _is_new(put: Put, there: Beliefs) -> bool:
    return put.expected_version == ANY_VERSION and not there.get(put.path, False)


def _version(expected: int) -> int:
    return ANY if expected == ANY_VERSION else expected


def _add_create(plan: Plan, put: Put, index: int, there: Beliefs) -> None:
    for parent in reversed(ancestors(put.path)):
        if not there.get(parent, True):
            plan.add(Create(parent, b""), PARENT)
            there[parent] = True
    plan.add(Create(put.path, put.value, put.ephemeral, put.sequential), index)
    if not put.sequential:
        there[put.path] = True


def ancestors(path: str) -> list[str]:
    """Nodes above a path, the nearest first, without the root."""
    found = []
    parent = split_path(path)[0]
    while parent != ROOT:
        found.append(parent)
        parent = split_path(parent)[0]
    return found


def learn(plan: Plan, operations: Sequence[Operation], refused: Refused, beliefs: Beliefs) -> list[str]:
    """Correct the beliefs by a refusal, or raise the caller's error.

    Returns the paths that the caller has to look up before the next plan.
    """
    step, index = plan.steps[refused.index], plan.operations[refused.index]
    operation = None if index == PARENT else operations[index]
    match step, refused.code:
        case Create(), Code.NO_NODE:
            return ancestors(step.path)
        case Create(), Code.NODE_EXISTS if operation is None or _takes_any(operation):
            beliefs[step.path] = True
        case SetData(), Code.NO_NODE if operation is not None and _takes_any(operation):
            beliefs[step.path] = False
        case _:
            raise _refusal(step, operation, refused)
    return []


def _takes_any(operation: Operation) -> bool:
    return isinstance(operation, Put) and not operation.sequential and operation.expected_version == ANY_VERSION


def _refusal(step: Step, operation: Operation | None, refused: Refused) -> MetadataError:
    expected = ANY_VERSION if operation is None else operation.expected_version
    match step, refused.code:
        case Remove(), Code.NO_NODE:
            return NoNode(step.path)
        case _, Code.NOT_EMPTY:
            return NotEmpty(step.path)
        case Create(), Code.NODE_EXISTS:
            return BadVersion(f"{step.path}: expected version {expected}, and it exists")
        case SetData(), Code.NO_NODE:
            return BadVersion(f"{step.path}: expected version {expected}, and it is not there")
        case _, Code.BAD_VERSION:
            return BadVersion(f"{step.path}: expected version {expected}, found another")
        case Create(), Code.NO_CHILDREN_FOR_EPHEMERALS:
            return MetadataError(f"{split_path(step.path)[0]} is ephemeral: it cannot have children")
    return MetadataError(f"{step.path}: ZooKeeper refused: {refused.text}")
