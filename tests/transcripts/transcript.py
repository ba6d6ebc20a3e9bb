"""Format of a transcript, and its replay: events go into a machine, and the effects and changes of state come out as lines.

    # One sentence: the claim of the story.
    with ensemble=3 write=3 ack=2
    > Appended first=0 count=1
      Send piece=0 entries=0 seats=0,1,2
      = pending: 1

`#` begins a comment, `with` gives the settings of the machine, `>` an event. Indented lines are the outcome of the event
above: its effects in order, `!` with an error, and `=` with each part of the state that is another one than before.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import zip_longest
from typing import Protocol, TypeVar

E = TypeVar("E", bound=IntEnum)

EVENT, SETTINGS, OUTCOME = "> ", "with ", "  "


class TranscriptError(Exception):
    """The transcript itself is wrong: an unknown event, or an argument that is missing or that nothing reads."""


@dataclass(slots=True)
class Step:
    """A name and its arguments, written `Name key=value flag`. Every argument has to be read."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)

    def text(self, key: str, default: str | None = None) -> str:
        self._read.add(key)
        found = self.arguments.get(key, default)
        if found is None:
            raise TranscriptError(f"{self.name} needs {key}=")
        return found

    def texts(self, key: str) -> list[str]:
        """Values between commas; none where the argument is missing."""
        return [each for each in self.text(key, "").split(",") if each]

    def number(self, key: str, default: int | None = None) -> int:
        return int(self.text(key, None if default is None else str(default)))

    def numbers(self, key: str) -> list[int]:
        return [int(each) for each in self.texts(key)]

    def flag(self, key: str) -> bool:
        return self.text(key, "no") == "yes"

    def member(self, key: str, of: type[E]) -> E:
        name = self.text(key)
        if name not in of.__members__:
            raise TranscriptError(f"{self.name}: {key}={name} is no {of.__name__}")
        return of[name]

    def unknown(self) -> TranscriptError:
        return TranscriptError(f"{self.name} is no event of this machine")

    def check_all_read(self) -> None:
        unread = sorted(self.arguments.keys() - self._read)
        if unread:
            raise TranscriptError(f"{self.name} has no argument {', '.join(unread)}")


class Machine(Protocol):
    """A machine behind its adapter."""

    def handle(self, step: Step) -> Iterable[str]:
        """Takes the event; the lines of its effects."""

    def state(self) -> Mapping[str, str]:
        """Parts of the state by name, each as a short text."""

    def check_invariants(self) -> None: ...


def step_of(line: str) -> Step:
    name, *words = line.split()
    arguments = {key: value if equals else "yes" for key, equals, value in (word.partition("=") for word in words)}
    if len(arguments) < len(words):
        raise TranscriptError(f"{name} has an argument twice")
    return Step(name, arguments)


def replay(text: str, start: Callable[[Step], Machine]) -> str:
    """The same transcript with the outcomes that the machine has now. Checks the invariants after every event."""
    lines = [line for line in text.splitlines() if not line.startswith(OUTCOME)]
    settings = [line for line in lines if line.startswith(SETTINGS)]
    first_event = next((at for at, line in enumerate(lines) if line.startswith(EVENT)), len(lines))
    if len(settings) > 1 or any(line.startswith(SETTINGS) for line in lines[first_event:]):
        raise TranscriptError("the settings are one line, before the first event")
    given = step_of(settings[0]) if settings else Step("with")
    machine = start(given)
    given.check_all_read()
    written: list[str] = []
    state = dict(machine.state())
    for line in lines:
        written.append(line)
        if line.startswith(EVENT):
            try:
                written += _outcome(machine, step_of(line.removeprefix(EVENT)), state)
            except Exception as error:
                error.add_note(f"after the event of line {len(written)}: {line}")
                raise
        elif line and not line.startswith(("#", SETTINGS)):
            raise TranscriptError(f"line {len(written)} is no comment, event or outcome: {line}")
    return "\n".join(written) + "\n"


def _outcome(machine: Machine, step: Step, known: dict[str, str]) -> list[str]:
    """Takes the step; its lines. `known` is the state as it was shown last, and follows."""
    lines = list(machine.handle(step))
    step.check_all_read()
    machine.check_invariants()
    state = machine.state()
    lines += [f"= {part}: {text}" for part, text in state.items() if known.get(part) != text]
    lines += [f"= {part}: gone" for part in known if part not in state]
    known.clear()
    known.update(state)
    return [OUTCOME + line for line in lines or ["nothing"]]


def first_difference(expected: str, actual: str) -> tuple[int, str, str] | None:
    """Number of the first line that differs, and both of its forms."""
    pairs = zip_longest(expected.splitlines(), actual.splitlines(), fillvalue="(end of the transcript)")
    return next(((number, one, other) for number, (one, other) in enumerate(pairs, 1) if one != other), None)
