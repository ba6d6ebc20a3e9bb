"""What a worker of Python pays for having imported much.

PySpark's daemon runs the cycle collector after every task of a worker that it keeps, over all that PySpark, Arrow and this
package consist of: 0.05 s of CPU each time, while the next task waits. None of that is ever let go, so why look at it.
"""

import gc
import sys

_DAEMON = "pyspark.daemon"


def leave_modules_to_themselves() -> None:
    """Once in each worker, after its imports; elsewhere nothing, as the process is somebody's else."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == _DAEMON and not gc.get_freeze_count():
        gc.freeze()
