"""End of a protobuf group, which is a field between two tags: only old writers still use them. Pure.

They are never read, only stepped over: one at a time, as they are rare.
"""

from .octets import Octets

GROUP, _GROUP_END = 3, 4
_DEPTH_MAX = 100
"""Deepest nesting of groups, as in Google's libraries."""
_VARINT_BYTES_MAX = 10


def group_end(data: Octets, number: int, at: int, end: int) -> int:
    """The place after the end of the group of that number whose fields begin at `at`; -1 where it has none before `end`."""
    open_groups = [number]
    while open_groups and 0 <= at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if kind == _GROUP_END and open_groups.pop() != number:
            return -1
        if kind == GROUP:
            open_groups.append(number)
            if len(open_groups) > _DEPTH_MAX:
                return -1
        elif kind != _GROUP_END:
            at = _after(data, kind, at, end)
    return at if not open_groups and at <= end else -1


def _after(data: Octets, kind: int, at: int, end: int) -> int:
    """The place after a value; -1 where there is none."""
    if at < 0:
        return -1
    match kind:
        case 0:
            return _varint(data, at, end)[1]
        case 1:
            return at + 8
        case 2:
            length, at = _varint(data, at, end)
            return at + length if at >= 0 else -1
        case 5:
            return at + 4
    return -1


def _varint(data: Octets, at: int, end: int) -> tuple[int, int]:
    """Value of the varint and its end; -1 where it does not end."""
    value = 0
    for place in range(at, min(at + _VARINT_BYTES_MAX, end)):
        octet = int(data[place])
        value |= (octet & 127) << 7 * (place - at)
        if octet < 128:
            return value, place + 1
    return 0, -1
