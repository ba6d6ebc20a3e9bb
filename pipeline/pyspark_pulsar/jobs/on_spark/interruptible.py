"""Work on Spark in a thread of its own: Ctrl-C never interrupts an exchange with the JVM.

There it would leave stacks of two languages, and work that goes on. Here it is cancelled, and ends as any that fails: with what
it began taken back. A second Ctrl-C does not wait for that.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import TypeVar

_AGAIN_SECONDS = 0.3
_Result = TypeVar("_Result")


class Interruption:
    """Whether the user wants no more of it."""

    def __init__(self) -> None:
        self._has_come = threading.Event()

    def check(self) -> None:
        """Raises KeyboardInterrupt if it has come: for steps that cannot be cancelled, such as the start of a session."""
        if self._has_come.is_set():
            raise KeyboardInterrupt

    def run(self, work: Callable[[], _Result], cancel: Callable[[], None], tell: Callable[[], None]) -> _Result:
        """Result of the work, or its error; KeyboardInterrupt after it has ended: told once, and cancelled until then."""
        result: Future[_Result] = Future()
        thread = threading.Thread(target=_worked, args=(work, result), name="job", daemon=True)
        try:
            thread.start()
            return result.result()
        except KeyboardInterrupt:
            self._has_come.set()
            tell()
            while not result.done():
                cancel()
                wait_for([result], _AGAIN_SECONDS)
            raise


def _worked(work: Callable[[], _Result], result: "Future[_Result]") -> None:
    try:
        result.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where it is waited for
        result.set_exception(error)
