"""Client: the other side of a session, as the session sees it."""

from typing import Protocol


class Client(Protocol):
    """Client's end of a session."""

    def tell(self, text: str) -> None: ...
    def end(self, code: int, reason: str) -> None: ...
    def reading_changed(self) -> None:
        """`Session.takes_more` may have changed."""
