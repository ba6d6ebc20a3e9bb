"""Rng: the only source of chance."""

import random
from typing import Protocol


class Rng(Protocol):
    """Chance; `random.Random` satisfies it."""

    def random(self) -> float: ...
    def getrandbits(self, k: int, /) -> int: ...


class RealRng(random.SystemRandom):
    """The operating system's randomness."""
