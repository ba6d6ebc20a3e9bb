"""`pulsar-pipeline JOB ...`.

Exit code 0 when there is nothing wrong, 1 when a job found something, 2 when it could not be done.
"""

import sys

from .command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
