"""Seeds in rounds: the topics of a round are written by turns, the server is killed in the middle, and all are read."""

import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from random import Random

import pulsar

from pipeline.pyspark_pulsar.errors import PipelineError
from tests.clients.server_process import Ready

from .checking import Differs, Figures, check, features, look
from .client_side import silent_client
from .peer import Refused
from .queries import Way
from .recipe import PHASES, recipe_of
from .servers import NAMESPACES, Servers, make_namespaces
from .writer import Site, Topic, finished, made, phase

_DEFECTS = (AssertionError, LookupError, TypeError, ValueError, OSError, PipelineError, Refused, pulsar.PulsarException)
"""Errors that end a seed which found something; the run goes on with the others."""


class Round:
    """Round of some seeds, each a topic. `failures`: by seed, the differences; such a topic is left alone afterwards."""

    def __init__(
        self, seeds: Sequence[int], ways: Sequence[Way], queries: int, keys: pulsar.CryptoKeyReader | None, figures: Figures
    ) -> None:
        self._seeds, self._ways, self._queries, self._keys, self._figures = seeds, ways, queries, keys, figures
        self.topics: list[Topic] = []
        self.failures: dict[int, str] = {}

    def write(self, ready: Ready, number: int, namespaces: tuple[str, str]) -> None:
        """One phase of all of them."""
        with closing(silent_client(ready.broker_url)) as client:
            site = Site(ready, client, self._keys)
            if number == 0:
                self.topics = [made(site, recipe_of(seed), namespaces) for seed in self._seeds]
            for topic in self.topics:
                self._try(topic, partial(self._write, site, number))

    def _write(self, site: Site, number: int, topic: Topic) -> None:
        rng = Random(f"look {topic.recipe.seed} {number}")
        phase(site, topic, number, lambda each: look(rng, site, each, self._ways, self._figures))
        if number == PHASES - 1:
            finished(site, topic)

    def check(self, ready: Ready) -> None:
        with closing(silent_client(ready.broker_url)) as client:
            for topic in self.topics:
                self._try(topic, partial(self._check, Site(ready, client, self._keys)))

    def _check(self, site: Site, topic: Topic) -> None:
        rng = Random(f"check {topic.recipe.seed}")
        self._figures.counts.update(f"with {name}" for name in features(topic))
        check(rng, site, topic, self._ways, self._queries, self._figures)

    def _try(self, topic: Topic, work: Callable[[Topic], None]) -> None:
        seed = topic.recipe.seed
        if seed in self.failures:
            return
        try:
            work(topic)
        except Differs as error:
            self.failures[seed] = str(error)
        except _DEFECTS:
            self.failures[seed] = f"seed {seed}: {traceback.format_exc()}"


def run(
    servers: Servers, seeds: Sequence[int], round_size: int, queries: int, keys: pulsar.CryptoKeyReader | None
) -> tuple[dict[int, str], Figures]:
    figures, failures = Figures(), dict[int, str]()
    ready = servers.begin()
    make_namespaces(ready, NAMESPACES)
    for first in range(0, len(seeds), round_size):
        this = Round(seeds[first : first + round_size], servers.ways, queries, keys, figures)
        this.write(ready, 0, NAMESPACES)
        ready = servers.crash()
        for number in range(1, PHASES):
            this.write(ready, number, NAMESPACES)
        this.check(ready)
        for each in this.failures.values():
            print(each, flush=True)
        failures |= this.failures
        print(f"seeds up to {seeds[min(first + round_size, len(seeds)) - 1]}: {len(failures)} differ", flush=True)
    return failures, figures
