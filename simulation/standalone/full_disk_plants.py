"""Planted bugs that only a disk without room shows: something is answered that did not fit, or it is full for good."""

import errno
from typing import Any

from bookie.disk_space.health import FULL, Health
from bookie.journal.journal import Journal
from metadata.embedded import EmbeddedStore


def _answered_without_room(complete: Any) -> Any:
    def broken(self: Journal, items: Any, failure: Any) -> None:
        complete(self, items, None if failure is not None and failure.errno == errno.ENOSPC else failure)

    return broken


def _metadata_answered_without_room(take_back: Any) -> Any:
    def broken(self: EmbeddedStore, reason: str) -> None:
        assert self._flying is not None
        self._flying.answer()

    return broken


def _full_for_good(turn_writable: Any) -> Any:
    def broken(self: Health, kind: str) -> None:
        if kind != FULL:
            turn_writable(self, kind)

    return broken


FULL_DISK_PLANTS = {
    "full-for-good": (
        "a bookie whose disk was full once is read-only until it is started again", Health, "turn_writable", _full_for_good,
    ),
    "answered-without-room": (
        "an add is answered though the journal had no room for it", Journal, "_complete", _answered_without_room,
    ),
    "metadata-answered-without-room": (
        "a write of metadata is answered though it did not fit", EmbeddedStore, "_take_back", _metadata_answered_without_room,
    ),
}  # fmt: skip
