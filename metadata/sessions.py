"""Sessions: events that a metadata store tells holders of ephemeral nodes. Pure.

Apache's words (Pulsar's SessionEvent): between CONNECTION_LOST and RECONNECTED the nodes are still there and no other client
can take them; from SESSION_LOST on others may, so a holder that relies on one must stop; after SESSION_REESTABLISHED the holder
makes them again.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol


class SessionEvent(Enum):
    """Change of the session's state."""

    CONNECTION_LOST = "ConnectionLost"
    RECONNECTED = "Reconnected"
    SESSION_LOST = "SessionLost"
    SESSION_REESTABLISHED = "SessionReestablished"


SessionListener = Callable[[SessionEvent], None]


class Sessions(Protocol):
    """A store whose session can be lost. Listeners are called on the event loop and must not raise."""

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        """Tell of every event from now on; returns the call that ends it."""
