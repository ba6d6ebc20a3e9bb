"""Chance of a run: one independent stream per purpose, all from one seed, so that a new draw in one place shifts no other."""

import random


def stream(seed: int, purpose: str) -> random.Random:
    """The stream for `purpose` (which satisfies `ports.rng.Rng`). Text seeds are hashed by content: equal on every machine."""
    return random.Random(f"{seed}/{purpose}")
