"""Session: which version a peer speaks, and whether it still does anything. Pure: facts in, verdicts out.

A peer speaks version 3 for as long as each of its frames is a Request; the first that is not makes it one of version 2 for
good (BookieProtoEncoding.RequestDecoder). The protocol has no ping: an idle peer is fine, one that stops in the middle is not.
"""

from wire.bookie import version2, version3
from wire.bookie.requests import Request

TICK_SECONDS = 30.0
"""Between two looks at a peer."""


class Session:
    """One peer's."""

    def __init__(self) -> None:
        self._is_version2 = False
        self._was_heard = False
        self._unsent_bytes = 0

    @property
    def version(self) -> int:
        """2 or 3; 3 before anything was said."""
        return 2 if self._is_version2 else 3

    def decode(self, body: bytes) -> Request:
        """The request in a frame. MalformedCommand ends the connection."""
        if not self._is_version2:
            request = version3.decode(body)
            if request is not None:
                return request
        self._is_version2 = True
        return version2.decode(body)

    def took_run(self) -> None:
        """A kernel has taken frames that can only be of version 2."""
        self._is_version2 = True

    def heard(self) -> None:
        """Bytes have come."""
        self._was_heard = True

    def tick(self, *, half_frame_bytes: int, unsent_bytes: int, is_reading: bool) -> str:
        """Every TICK_SECONDS: why the peer is given up; empty when it is not.

        `half_frame_bytes` have come of a frame that is not whole, `unsent_bytes` wait for the peer to read.
        """
        heard, self._was_heard = self._was_heard, False
        before, self._unsent_bytes = self._unsent_bytes, unsent_bytes
        if half_frame_bytes and is_reading and not heard:
            return f"nothing came of the rest of a frame for {TICK_SECONDS:.0f} s"
        if before and unsent_bytes >= before:
            return f"the peer read none of {unsent_bytes} bytes of answers for {TICK_SECONDS:.0f} s"
        return ""
