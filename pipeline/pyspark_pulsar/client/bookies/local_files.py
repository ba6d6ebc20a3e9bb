"""Stored entries straight from the files of a bookie on this machine, which hands them over; blocking.

A bookie of Interpulse tells where entries are on a socket: docs/adr/0030-reads-on-one-machine.md. Apache's bookies have no such
socket, and neither has a bookie on another machine: `offered` is None then.
"""

import itertools
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy

from wire.generated import bookie_protocol_pb2 as api

from ...decode.octets import PADDING_BYTES, Places
from ...decode.rooms import Rooms
from ..connection import Lost
from .bookie_answers import Answers, TooMuch

_FILES_MAX = 128
_ANSWER_BYTES_MAX = 128 << 10
_RANGES_MAX = 512
_GAP_BYTES_MAX = 64 << 10
"""Between entries that are read in one go: less than a read costs."""
_AHEAD_BYTES_MAX = 8 << 20
_ROOMS = Rooms(3)
_SEGMENT = numpy.dtype([("file", "<u4"), ("entries", "<u4"), ("place", "<u8"), ("first", "<i8")])
_COUNT = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer of a bookie: the name of its socket, and the token that a request begins with."""

    socket_name: bytes
    token: bytes


def request() -> bytes:
    """The frame that asks a bookie for its offer (GET_BOOKIE_INFO of version 3), which any bookie answers."""
    header = api.BKPacketHeader(version=api.VERSION_THREE, operation=api.GET_BOOKIE_INFO, txnId=1)
    asked = api.GetBookieInfoRequest(requested=api.GetBookieInfoRequest.LOCAL_READS)
    body = api.Request(header=header, getBookieInfoRequest=asked).SerializeToString()
    return len(body).to_bytes(4, "big") + body


def offered(body: bytes) -> Offer | None:
    """Offer in a bookie's answer."""
    info = api.Response.FromString(body).getBookieInfoResponse
    return Offer(info.localReads.socket, info.localReads.token) if info.HasField("localReads") else None


class LocalFiles:
    """`ask`, then `answers`, as often as wanted; `close` at the end. Lost for whatever goes wrong."""

    def __init__(self, offer: Offer, address: str, timeout_seconds: float) -> None:
        self._address, self._token = address, offer.token
        self._descriptors: list[int] = []
        if not hasattr(socket, "AF_UNIX"):
            raise self._lost("this machine has no such sockets")
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as error:
            raise self._lost(error) from None
        self._socket.settimeout(timeout_seconds)
        try:
            self._socket.connect(b"\0" + offer.socket_name)
        except OSError as error:
            self._socket.close()
            raise self._lost(error) from None

    def _lost(self, error: object) -> Lost:
        return Lost(f"files of bookie {self._address}: {error}")

    def ask(self, ledger_id: int, entry_ids: Places) -> None:
        """Asks for the places of these entries, which are in order."""
        breaks = numpy.flatnonzero(numpy.diff(entry_ids) != 1) + 1
        if len(breaks) >= _RANGES_MAX:  # entries between ranges are reported too, and left out
            breaks = breaks[numpy.argsort(numpy.diff(entry_ids)[breaks - 1], kind="stable")[-_RANGES_MAX + 1 :]]
            breaks.sort()
        firsts = entry_ids[numpy.append(0, breaks)]
        ends = entry_ids[numpy.append(breaks - 1, len(entry_ids) - 1)] + 1
        ranges = numpy.stack([firsts, ends], axis=1).astype("<i8")
        try:
            self._socket.send(self._token + struct.pack("<q", ledger_id) + ranges.tobytes())
        except OSError as error:
            raise self._lost(error) from None

    def answers(self, entry_ids: Places, bytes_max: int) -> Answers:
        """Answers for the entries asked for; `is_there` is false for those that are not in the files.

        TooMuch when several have more than `bytes_max` together.
        """
        there = self._told().chosen(entry_ids)
        held = int((there.ends - there.starts).sum())
        if held > bytes_max and len(there.entry_ids) > 1:
            raise TooMuch(held // len(there.entry_ids))
        data, starts, ends = self._read(there)
        places = numpy.searchsorted(there.entry_ids, entry_ids)
        places[places == len(there.entry_ids)] = 0
        if not len(there.entry_ids):
            nowhere = numpy.zeros(len(entry_ids), numpy.int64)
            return Answers(data, nowhere, nowhere, entry_ids, nowhere != 0)
        return Answers(data, starts[places], ends[places], entry_ids, there.entry_ids[places] == entry_ids)

    def _told(self) -> "_Told":
        try:
            message, descriptors, flags, _ = socket.recv_fds(self._socket, _ANSWER_BYTES_MAX, _FILES_MAX)
        except OSError as error:
            raise self._lost(error) from None
        self._descriptors += descriptors
        if not message or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise self._lost("it closed the connection" if not message else "an answer that is too long")
        return _told(message)

    def _read(self, there: "_Told") -> tuple[numpy.ndarray, Places, Places]:
        """Into one room: what lies close together in one go."""
        extents = list(_extents(there))
        size = sum(end - start for _, start, end, _ in extents)
        room = _ROOMS.of(size + PADDING_BYTES)
        starts = numpy.empty(len(there.starts), numpy.int64)
        ends = numpy.empty(len(there.starts), numpy.int64)
        at = 0
        for file, start, end, rows in extents:
            self._read_extent(file, start, room.data[at : at + end - start])
            starts[rows], ends[rows] = there.starts[rows] - start + at, there.ends[rows] - start + at
            at += end - start
        room[size:] = 0
        return room, starts, ends

    def _read_extent(self, file: int, place: int, room: memoryview) -> None:
        descriptor = self._descriptors[file]
        filled = 0
        try:
            while filled < len(room):
                got = os.preadv(descriptor, [room[filled:]], place + filled)
                if not got:
                    raise self._lost("a file is shorter than it was told")
                filled += got
            os.posix_fadvise(descriptor, place + filled, min(filled, _AHEAD_BYTES_MAX), os.POSIX_FADV_WILLNEED)
        except OSError as error:
            raise self._lost(error) from None

    def close(self) -> None:
        self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.pop())


@dataclass(frozen=True, slots=True)
class _Told:
    """Stored entries by id: of entry i the bytes `starts[i]` to `ends[i]` of a file."""

    files: Places
    starts: Places
    ends: Places
    entry_ids: Places

    def chosen(self, wanted: Places) -> "_Told":
        rows = numpy.isin(self.entry_ids, wanted, assume_unique=True)
        if bool(rows.all()):
            return self
        return _Told(self.files[rows], self.starts[rows], self.ends[rows], self.entry_ids[rows])


def _told(message: bytes) -> _Told:
    """Places in an answer of the bookie, which `wire/bookie/local_reads.py` makes."""
    (count,) = _COUNT.unpack_from(message)
    segments = numpy.frombuffer(message, _SEGMENT, count, _COUNT.size)
    offsets = numpy.frombuffer(message, "<u4", -1, _COUNT.size + segments.nbytes).astype(numpy.int64)
    entries = segments["entries"].astype(numpy.int64)
    segment_of = numpy.repeat(numpy.arange(count), entries)
    before = numpy.cumsum(entries) - entries
    within = numpy.arange(len(segment_of)) - before[segment_of]
    at = within + (before + numpy.arange(count))[segment_of]
    places = segments["place"].astype(numpy.int64)[segment_of]
    found = _Told(
        segments["file"].astype(numpy.int64)[segment_of],
        places + offsets[at],
        places + offsets[at + 1],
        segments["first"][segment_of] + within,
    )
    order = numpy.argsort(found.entry_ids, kind="stable")
    return _Told(found.files[order], found.starts[order], found.ends[order], found.entry_ids[order])


def _extents(there: _Told) -> Iterator[tuple[int, int, int, Places]]:
    """File, first byte, the one after the last, and which entries these are."""
    if not len(there.starts):
        return
    order = numpy.lexsort((there.starts, there.files))
    files, starts, ends = there.files[order], there.starts[order], there.ends[order]
    is_break = (files[1:] != files[:-1]) | (starts[1:] - ends[:-1] > _GAP_BYTES_MAX)
    bounds = [0, *(numpy.flatnonzero(is_break) + 1).tolist(), len(order)]
    for first, stop in itertools.pairwise(bounds):
        yield int(files[first]), int(starts[first]), int(ends[stop - 1]), order[first:stop]
