"""Cost: how many steps a piece of work takes, counted and not timed. So a test can say that work is linear in its input.

A step is one bytecode of Python, in whatever module. Work in C is weighed by what it is given: a call of a C function, an
operator and a comparison cost as many steps as the containers among their operands have elements (`list.count`, `in` on a
list, `sorted`, `bytes + bytes`, a slice, `BitMap(range(...))`); a message of protobuf counts by its bytes, an integer by its
words. Calls known to take constant time (`append`, `dict.get`, `len`) cost nothing more, see `_CONSTANT`. A bitmap counts as
its containers and at most `_BITMAP_MAX` more, since its set operations go by those. A compiled kernel costs the arrays and
bytes that it is given; the loops inside are counted in tests/wire/test_kernel_costs.py, where the same modules run
uncompiled.

The garbage collector rests meanwhile: it would free other code's objects, and their finalizers would count.

Not seen: what a C function does beyond one pass over its operands (a pattern that backtracks, a deallocation), threads, other
processes, and what an iterator in C goes through, which counts where the iterator is made. Operands are read from the
interpreter's stack, whose place is known for CPython 3.11; elsewhere bytecodes alone are counted (`SEES_OPERANDS`). Since 3.12
`sys.monitoring` counts them: there a frame that is traced for its opcodes tells of none before its code is called again.
"""

import ctypes
import dis
import gc
import itertools
import sys
import threading
from array import array
from asyncio.base_events import BaseEventLoop
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from google.protobuf.message import Message
from pyroaring import BitMap

from simulation.world.loop import SimLoop

SEES_OPERANDS = sys.version_info[:2] == (3, 11) and sys.implementation.name == "cpython"

_TOOL = 4
"""Tool number that `sys.monitoring` gives to no tool by name."""
_BITMAP_MAX = 64
_CONSTANT = frozenset(
    (
        "HasField",
        "WhichOneof",
        "__contains__",
        "__getitem__",
        "__iter__",
        "__new__",
        "__setitem__",
        "add",
        "append",
        "appendleft",
        "bisect",
        "bisect_left",
        "bisect_right",
        "call_soon",
        "cast",
        "clear",
        "delattr",
        "discard",
        "endswith",
        "from_bytes",
        "from_address",
        "get",
        "getattr",
        "hasattr",
        "hash",
        "heappop",
        "heappush",
        "id",
        "isinstance",
        "issubclass",
        "items",
        "iter",
        "keys",
        "len",
        "next",
        "ord",
        "popitem",
        "popleft",
        "put",
        "put_nowait",
        "release",
        "setattr",
        "setdefault",
        "startswith",
        "type",
        "unpack_from",
        "values",
        "write",
    )
)
"""Names of calls that take the same time however large their object is; `clear` pays for what was added."""
_GROWING = frozenset(
    (
        "extend",
        "frombytes",
        "intersection_update",
        "join",
        "symmetric_difference_update",
        "update",
        "writelines",
    )
)
"""Names of calls that do not go through the object itself."""
_COPYING = (
    *(list, tuple, str, bytes, bytearray, dict, set, frozenset, array, deque, BitMap),
    *(map, filter, zip, itertools.compress, itertools.chain, itertools.starmap, itertools.islice),
)
"""Classes that go through what they are made of."""
_SIZED = (list, tuple, str, bytes, bytearray, memoryview, dict, set, frozenset, range, array, deque)
_SEARCHED = (list, tuple, str, bytes, bytearray, memoryview, array, deque)
_TURNS: tuple[CodeType, ...] = (BaseEventLoop._run_once.__code__, SimLoop._turn.__code__)  # type: ignore[attr-defined]
"""Code that an event loop runs once each turn."""


def assert_linear(work: Callable[[int], Callable[[], Any]], n: int, *, times: int = 8, bound: float = 9.0) -> None:
    """Asserts that the work for `times * n` costs at most `bound` times the steps of the work for n."""
    small, large = steps(work(n)), steps(work(times * n))
    ratio = large / small
    assert ratio <= bound, f"{times} times the input cost {ratio:.1f} times the steps: {small} for {n}, {large} for {times * n}"


def steps(work: Callable[[], Any]) -> int:
    """Steps that a call costs."""
    with Counter() as counter:
        work()
    return counter.steps


class Counter:
    """Counts in a `with` block, in the thread that entered it. `longest`: the most steps of one turn of an event loop.

    A frame that was running at its beginning is not counted, except for what it calls.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.longest = 0
        self._turn_began = 0
        self._codes: dict[CodeType, bytes] = {}
        self._old: Any = None
        self._collects = False

    def __enter__(self) -> "Counter":
        self._collects = gc.isenabled()
        gc.disable()
        if sys.version_info >= (3, 12):
            self._watch()
        else:
            self._old = sys.gettrace()
            sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(_TOOL, 0)
            sys.monitoring.free_tool_id(_TOOL)
        else:
            sys.settrace(self._old)
        self._turn()
        if self._collects:
            gc.enable()

    def _watch(self) -> None:
        """Count in this thread, whatever runs: a tool sees a code's bytecodes from the first on."""
        if sys.version_info >= (3, 12):
            here, tools = threading.get_ident(), sys.monitoring

            def instruction(code: CodeType, _: int) -> None:
                if threading.get_ident() == here:
                    self.steps += 1

            def started(code: CodeType, _: int) -> None:
                if code in _TURNS and threading.get_ident() == here:
                    self._turn()

            tools.use_tool_id(_TOOL, "steps")
            tools.register_callback(_TOOL, tools.events.INSTRUCTION, instruction)
            tools.register_callback(_TOOL, tools.events.PY_START, started)
            tools.set_events(_TOOL, tools.events.INSTRUCTION | tools.events.PY_START)

    def _turn(self) -> None:
        self.longest = max(self.longest, self.steps - self._turn_began)
        self._turn_began = self.steps

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code in _TURNS:
            self._turn()
        if code not in self._codes:  # the lists inside of a SortedDict have a bound
            self._codes[code] = b"" if "sortedcontainers" in code.co_filename else code.co_code
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self.steps += 1
            code = self._codes[frame.f_code]
            if SEES_OPERANDS and code:
                at = frame.f_lasti
                weigh = _WEIGHTS.get(code[at])
                if weigh is not None:
                    self.steps += weigh(_Stack(frame), code[at + 1])
        return self._step


class _Stack:
    """The operands of a frame's next bytecode: `[1]` is the topmost. CPython 3.11: `_PyInterpreterFrame` in pycore_frame.h."""

    __slots__ = ("_locals", "_top")

    def __init__(self, frame: FrameType) -> None:
        inner = ctypes.c_void_p.from_address(id(frame) + 24).value
        assert inner is not None, "a frame that runs has an interpreter frame"
        self._top = ctypes.c_int.from_address(inner + 64).value
        self._locals = inner + 72

    def __getitem__(self, place: int) -> Any:
        """None also where there is nothing."""
        at = self._locals + 8 * (self._top - place)
        return ctypes.py_object.from_address(at).value if ctypes.c_void_p.from_address(at).value else None


def _size(value: Any) -> int:
    """Count of the elements of an operand; 0 for one that is no container."""
    if isinstance(value, int):
        return value.bit_length() >> 6
    if isinstance(value, _SIZED):
        return len(value)
    if isinstance(value, BitMap):
        return min(len(value), _BITMAP_MAX) + (len(value) >> 16)
    if isinstance(value, Message):
        return value.ByteSize() if value.IsInitialized() else 0
    name = type(value).__name__
    return len(value) if name.startswith("Repeated") or name in ("dict_keys", "dict_values", "dict_items") else 0


def _of_call(stack: _Stack, count: int) -> int:
    arguments = [stack[at] for at in range(count, 0, -1)]
    if stack[count + 2] is None:
        return _of_called(stack[count + 1], arguments)
    return _of_called(stack[count + 2], [stack[count + 1], *arguments], has_object=True)


def _of_call_ex(stack: _Stack, flags: int) -> int:
    named = stack[1] if flags & 1 else {}
    positional = stack[2] if flags & 1 else stack[1]
    if not isinstance(positional, tuple):
        return _size(positional)
    return len(positional) + _of_called(stack[3] if flags & 1 else stack[2], [*positional, *named.values()])


def _of_called(called: Any, arguments: list[Any], *, has_object: bool = False) -> int:
    if isinstance(called, FunctionType | MethodType):
        return 0  # its own bytecodes are counted
    name = getattr(called, "__name__", "")
    if isinstance(called, type):
        return sum(map(_size, arguments)) if called in _COPYING else 0
    owner = arguments[0] if has_object else getattr(called, "__self__", None)
    others = arguments[1:] if has_object else arguments
    if name == "pop":
        return len(owner) if isinstance(owner, list | bytearray) and others else 0
    if name in _CONSTANT:
        return 0
    if type(called).__name__ == "cython_function_or_method":  # a kernel is told where to begin in the view of what was read
        return sum(_size(each) for each in arguments if not isinstance(each, memoryview | int))
    return sum(map(_size, others)) + (0 if name in _GROWING else _size(owner))


def _of_operator(stack: _Stack, operator: int) -> int:
    """An operator that writes in place goes through its right side alone; not so where the left one is a constant."""
    left, right = stack[2], stack[1]
    in_place = operator >= _IN_PLACE and isinstance(left, list | bytearray | array | dict | set | BitMap | deque)
    if operator % _IN_PLACE == _TIMES and not isinstance(left, int | float):
        return _size(left) * right if isinstance(right, int) else 0
    if operator % _IN_PLACE == _AND and isinstance(left, set | frozenset) and isinstance(right, set | frozenset):
        return min(len(left), len(right))
    return _size(right) + (0 if in_place else _size(left))


def _of_search(stack: _Stack, _: int) -> int:
    return len(stack[1]) if isinstance(stack[1], _SEARCHED) else 0


def _of_comparison(stack: _Stack, _: int) -> int:
    left, right = _size(stack[2]), _size(stack[1])
    return left if left == right else 0


def _of_subscript(stack: _Stack, _: int) -> int:
    owner, key = stack[2], stack[1]
    is_cut = isinstance(key, slice) and not isinstance(owner, memoryview) and hasattr(owner, "__len__")
    return len(range(*key.indices(len(owner)))) if is_cut else 0


def _of_change(stack: _Stack, _: int) -> int:
    """Writing a slice, or taking something out of a list. A bytearray loses its front without being moved."""
    if isinstance(stack[2], bytearray) and isinstance(stack[1], slice) and not stack[1].start:
        return len(range(*stack[1].indices(len(stack[2]))))
    return _size(stack[2]) if isinstance(stack[1], slice) or isinstance(stack[2], list) else 0


def _of_top(stack: _Stack, _: int) -> int:
    return _size(stack[1])


def _of_text(stack: _Stack, count: int) -> int:
    return sum(_size(stack[at]) for at in range(1, count + 1))


_IN_PLACE, _AND, _TIMES = 13, 1, 5
"""Numbers of operators: `_nb_ops` of CPython's opcode.py."""
_WEIGHTS: dict[int, Callable[[_Stack, int], int]] = {
    dis.opmap[name]: weigh
    for name, weigh in {
        "CALL": _of_call,
        "CALL_FUNCTION_EX": _of_call_ex,
        "BINARY_OP": _of_operator,
        "CONTAINS_OP": _of_search,
        "COMPARE_OP": _of_comparison,
        "BINARY_SUBSCR": _of_subscript,
        "DELETE_SUBSCR": _of_change,
        "LIST_EXTEND": _of_top,
        "SET_UPDATE": _of_top,
        "DICT_UPDATE": _of_top,
        "DICT_MERGE": _of_top,
        "FORMAT_VALUE": _of_top,
        "LIST_TO_TUPLE": _of_top,
        "BUILD_STRING": _of_text,
    }.items()
    if name in dis.opmap
}
