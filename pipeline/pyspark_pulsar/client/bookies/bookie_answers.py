"""Entries that a bookie answered with, whether over its port or from its files."""

from dataclasses import dataclass

import numpy

from ...decode.octets import Flags, Octets, Places


class TooMuch(Exception):
    """Answers that would not fit; `entry_bytes`: how many those that came have, on average."""

    def __init__(self, entry_bytes: int) -> None:
        super().__init__(f"entries of {entry_bytes} bytes")
        self.entry_bytes = entry_bytes


@dataclass(frozen=True, slots=True)
class Answers:
    """Stored entries `data[starts[i]:ends[i]]`, in the order of their ids. `is_there`: the code says that the bookie has it."""

    data: Octets
    starts: Places
    ends: Places
    entry_ids: Places
    is_there: Flags


def merged(answers: Answers, others: Answers) -> Answers:
    """With what `others` has, which are those that are not there in `answers`, in their order."""
    shift = len(answers.data)
    missing = numpy.flatnonzero(~answers.is_there)
    starts, ends, is_there = answers.starts.copy(), answers.ends.copy(), answers.is_there.copy()
    starts[missing], ends[missing], is_there[missing] = others.starts + shift, others.ends + shift, others.is_there
    return Answers(numpy.concatenate([answers.data, others.data]), starts, ends, answers.entry_ids, is_there)
