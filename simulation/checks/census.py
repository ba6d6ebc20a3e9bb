"""Census: what objects of ours a process has, and how much is in each of their containers. For tests of what stays behind.

Two of them at equal moments, subtracted, name a leak: `LoadedTopics` has three objects more, `EndingMeters.by_topic` two
hundred entries. Objects that the collector does not follow (numbers, bytes) show as the length of their container.
"""

import asyncio
import functools
import gc
import sys
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyroaring import BitMap
from sortedcontainers import SortedDict, SortedList, SortedSet

OURS = frozenset({"bookie", "bookkeeper", "broker", "cli", "handlers", "managed_ledger", "metadata", "ports", "wire"})
_CONTAINERS = (dict, list, set, frozenset, tuple, deque, OrderedDict, bytearray, BitMap, SortedDict, SortedList, SortedSet)


def census() -> Counter[str]:
    """Counts of objects by class; sizes by `Class.member`; also tasks, timers, caches and globals."""
    gc.collect()
    found: Counter[str] = Counter()
    for thing in gc.get_objects():
        for name, count in _counted(thing):
            found[name] += count
    for name, module in list(sys.modules.items()):
        if _is_ours(name):
            for member, held in vars(module).items():
                if isinstance(held, (dict, list, set, deque)) and not member.startswith("__"):
                    found[f"{name}:{member}"] += len(held)
    return found


def reached_from(roots: Iterable[object]) -> Counter[str]:
    """The same of all that these hold, and nothing of the rest of the process: what the code has (classes, modules), loops
    and the simulation's own objects are not entered."""
    found: Counter[str] = Counter()
    for thing in held_by(roots):
        for name, count in _counted(thing):
            found[name] += count
    return found


def held_by(roots: Iterable[object]) -> Iterator[object]:
    """Objects of `reached_from`, each once."""
    waiting, seen = list(roots), dict[int, object]()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or not gc.is_tracked(thing) or _is_border(thing):
            continue
        seen[id(thing)] = thing
        yield thing
        waiting += _closure(thing) if isinstance(thing, types.FunctionType) else gc.get_referents(thing)


def _is_border(thing: object) -> bool:
    if isinstance(thing, type | types.ModuleType | types.CodeType | asyncio.AbstractEventLoop):
        return True
    return type(thing).__module__.partition(".")[0] in ("simulation", "logging") and not isinstance(thing, asyncio.Future)


def _closure(function: types.FunctionType) -> list[object]:
    """Objects that a function holds, without its module."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if _has_contents(cell)]
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _has_contents(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Growth of each count."""
    return {name: count - before.get(name, 0) for name, count in sorted(after.items()) if count > before.get(name, 0)}


def _counted(thing: Any) -> Iterator[tuple[str, int]]:
    kind = type(thing)
    if _is_ours(kind.__module__):
        name = f"{kind.__module__}.{kind.__qualname__}"
        yield name, 1
        for member, held in _members(thing):
            if isinstance(held, _CONTAINERS):
                yield f"{name}.{member}", len(held)
    elif isinstance(thing, functools._lru_cache_wrapper):
        if _is_ours(thing.__module__):
            yield f"{thing.__module__}.{thing.__qualname__}()", thing.cache_info().currsize
    elif isinstance(thing, asyncio.Task):
        if not thing.done():
            yield f"task {thing.get_coro().__qualname__}", 1  # type: ignore[union-attr]  # a coroutine: nothing else is run
    elif isinstance(thing, asyncio.TimerHandle) and not thing.cancelled():
        yield f"timer {getattr(thing._callback, '__qualname__', '')}", 1  # type: ignore[attr-defined]  # whose it is


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in OURS and not module.endswith("_pb2")


def _members(thing: Any) -> Iterator[tuple[str, Any]]:
    yield from (getattr(thing, "__dict__", None) or {}).items()
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            full = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            if hasattr(thing, full):
                yield name, getattr(thing, full)
