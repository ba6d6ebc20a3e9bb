"""Requests that kazoo (2.11) lacks, or whose answers it shortens, as its connection expects them: type, bytes, answer.

Field order is ZooKeeper's (zookeeper.jute: AddWatchRequest, RemoveWatchesRequest, MultiTransactionRecord). Pure.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kazoo.protocol.serialization import stat_struct
from kazoo.protocol.states import ZnodeStat

from metadata.zookeeper.requests import Code, Create, Done, NodeStat, Refused, Remove, SetData, Step

CREATE2, DELETE, SET_DATA, ERROR = 15, 2, 5, -1
_EPHEMERAL, _SEQUENTIAL = 1, 2
_RECURSIVE = 1
"""AddWatchMode: persistent, and for everything below too."""
_ANY_WATCHER = 3
_ROLLED_BACK, _NOT_REACHED = 0, -2
"""Results of the steps before and after the one at fault."""
_ACL_ALL = struct.pack(">i", 31)
_KNOWN = {code.value for code in Code}
_HEADER = struct.Struct(">i?i")
_INT = struct.Struct(">i")


def text(value: str) -> bytes:
    return buffer(value.encode())


def buffer(value: bytes) -> bytes:
    return _INT.pack(len(value)) + value


OPEN_ACL = _INT.pack(1) + _ACL_ALL + text("world") + text("anyone")


def node_stat(stat: ZnodeStat) -> NodeStat:
    return NodeStat(stat.czxid, stat.mzxid, stat.version, stat.ctime, stat.mtime, stat.ephemeralOwner)


@dataclass(frozen=True, slots=True)
class AddWatchRequest:
    """A persistent recursive watch; `path` with the chroot."""

    path: str
    type: ClassVar[int] = 106

    def serialize(self) -> bytes:
        return text(self.path) + _INT.pack(_RECURSIVE)

    @staticmethod
    def deserialize(_data: bytes, _offset: int) -> None:
        return None


@dataclass(frozen=True, slots=True)
class RemoveWatchRequest:
    """The end of all watches of this connection at `path`."""

    path: str
    type: ClassVar[int] = 18

    def serialize(self) -> bytes:
        return text(self.path) + _INT.pack(_ANY_WATCHER)

    @staticmethod
    def deserialize(_data: bytes, _offset: int) -> None:
        return None


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """The server catches up with the leader before it answers what comes next."""

    path: str
    type: ClassVar[int] = 9

    def serialize(self) -> bytes:
        return text(self.path)

    @staticmethod
    def deserialize(_data: bytes, _offset: int) -> None:
        return None


@dataclass(frozen=True, slots=True)
class MultiRequest:
    """All steps or none; `root` is the chroot, put before every path and taken off again."""

    root: str
    steps: Sequence[Step]
    type: ClassVar[int] = 14

    def serialize(self) -> bytes:
        parts = [_HEADER.pack(kind, False, -1) + data for kind, data in map(self._step, self.steps)]
        return b"".join([*parts, _HEADER.pack(-1, True, -1)])

    def _step(self, step: Step) -> tuple[int, bytes]:
        path = text(self.root + step.path)
        match step:
            case Create():
                flags = (_EPHEMERAL if step.ephemeral else 0) | (_SEQUENTIAL if step.sequential else 0)
                return CREATE2, path + buffer(step.value) + OPEN_ACL + _INT.pack(flags)
            case SetData():
                return SET_DATA, path + buffer(step.value) + _INT.pack(step.version)
            case Remove():
                return DELETE, path + _INT.pack(step.version)

    def deserialize(self, data: bytes, offset: int) -> "list[Done | Refused]":
        """Results of the steps, or the one refusal, as values in a list, because kazoo logs raised errors and copies lists."""
        done: list[Done | Refused] = []
        index = 0
        kind, is_last, _ = _HEADER.unpack_from(data, offset)
        while not is_last:
            offset += _HEADER.size
            if kind == ERROR:
                (code,) = _INT.unpack_from(data, offset)
                offset += _INT.size
                if code not in (_ROLLED_BACK, _NOT_REACHED):
                    return [refusal(code, index)]
            else:
                answer, offset = self._done(kind, self.steps[index], data, offset)
                done.append(answer)
            index += 1
            kind, is_last, _ = _HEADER.unpack_from(data, offset)
        return done

    def _done(self, kind: int, step: Step, data: bytes, offset: int) -> tuple[Done, int]:
        path = step.path
        if kind == DELETE:
            return Done(path, None), offset
        if kind == CREATE2:
            (size,) = _INT.unpack_from(data, offset)
            offset += _INT.size
            path = data[offset : offset + size].decode().removeprefix(self.root)
            offset += size
        stat = ZnodeStat._make(stat_struct.unpack_from(data, offset))
        return Done(path, node_stat(stat)), offset + stat_struct.size


def refusal(code: int, index: int, reason: Any = "") -> Refused:
    known = Code(code) if code in _KNOWN else Code.OTHER
    return Refused(known, index, f"{known.name} ({code}) {reason}".strip())
