"""Cost of a Python worker that has imported much.

PySpark's daemon runs the cycle collector after every task of a worker that it keeps, over all that PySpark, Arrow and this
package consist of: 0.05 s of CPU each time, while the next task waits. These objects are never released: collecting is of no
use.
"""

import gc
import itertools
import sys

_DAEMON = "pyspark.daemon"
_SET_ASIDE_MAX = 2
_begun = itertools.count()
"""Tasks of this process."""


def leave_modules_to_themselves() -> None:
    """Sets modules aside when a task begins: twice in each worker, as the first task imports more; never in another process.
    The collector has just run when the second task begins: no garbage is kept for good."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if next(_begun) < _SET_ASIDE_MAX and main is not None and main.name == _DAEMON:
        gc.freeze()
