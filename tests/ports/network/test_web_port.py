"""WebPort: what every answer over HTTP has."""

from dataclasses import dataclass

from ports.network.web_port import DatedState


@dataclass
class Hand:
    """A clock that is set by hand."""

    milliseconds: int

    def now_ms(self) -> int:
        return self.milliseconds


def test_an_answer_bears_the_date_of_its_second() -> None:
    clock = Hand(784111777_000)
    state = DatedState(clock)
    assert state.default_headers == [(b"date", b"Sun, 06 Nov 1994 08:49:37 GMT")]
    clock.milliseconds += 999
    assert state.default_headers[0][1].endswith(b"08:49:37 GMT")
    clock.milliseconds += 1
    assert state.default_headers[0][1].endswith(b"08:49:38 GMT")
