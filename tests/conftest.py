"""How all tests run: hypothesis has no deadline (a loaded machine is not a bug), and in CI the same examples each time."""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
