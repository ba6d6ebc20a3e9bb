"""ByteRate: how long to wait so that no more bytes are copied than allowed. Pure; the time is an argument."""


class ByteRate:
    """`bytes_per_second` not above 0: no limit. What was copied at once is paid for by waiting after it; time in which nothing
    was copied is not saved up."""

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._paid_until = 0.0

    def wait_after(self, size_bytes: int, now: float) -> float:
        """Seconds to wait, now that so many bytes were copied."""
        if self._rate <= 0:
            return 0.0
        self._paid_until = max(self._paid_until, now) + size_bytes / self._rate
        return self._paid_until - now
