"""Every setting of every package is drawn by the plans, or named with the reason why no plan draws it."""

import dataclasses
from collections import Counter
from itertools import chain

from cli.configuration.loading import known_keys
from cli.standalone.server import SETTINGS
from ports.settings import build_settings, fold
from simulation.drawn_settings import DRAWN, DRAWN_BY_PLANS, ELSEWHERE, NOT_DRAWN, draw, draw_some
from simulation.standalone.plan import QUIET_SETTINGS, draw_plan
from simulation.world.clock import START_MS
from simulation.world.rng import stream

NAMED = [key for keys in NOT_DRAWN.values() for key in keys]
APART = [key for table in ELSEWHERE for key in table]
EVERY = (*DRAWN, *APART, *DRAWN_BY_PLANS, *NAMED)


def test_a_setting_is_drawn_or_named_with_a_reason() -> None:
    there = {fold(field.name) for settings in SETTINGS for field in dataclasses.fields(settings)}
    told = {fold(key) for key in EVERY}
    assert sorted(there - told) == [], "add it to DRAWN in simulation/drawn_settings.py"
    assert sorted(told - there) == [], "no package has such a setting any more"
    assert [key for key, count in Counter(map(fold, EVERY)).items() if count > 1] == []


def test_every_drawn_value_is_one_that_its_package_takes() -> None:
    known = set(known_keys())
    for key, values in chain(DRAWN.items(), *(table.items() for table in ELSEWHERE)):
        assert key in known
        for value in values:
            for settings in SETTINGS:
                build_settings(settings, {**QUIET_SETTINGS, key: value})


def test_no_message_of_a_simulated_client_is_too_old_for_the_quota() -> None:
    """Seed 400 of a cluster: a producer was refused for ever, since clients give publish times that begin in 1970."""
    assert all(int(seconds) * 1000 > START_MS for seconds in DRAWN["backlogQuotaDefaultLimitSecond"])


def test_the_list_of_settings_that_no_plan_draws_only_shrinks() -> None:
    """The number grows only with a door that no simulated client uses: by 4 with WebSocket, which stands on HTTP."""
    assert len(NAMED) <= 85, "this number only shrinks"


def test_within_two_thousand_seeds_every_value_is_drawn_and_the_same_seed_draws_the_same() -> None:
    drawn = {(key, value) for seed in range(2000) for key, value in draw(stream(seed, "settings")).items()}
    assert drawn == {(key, value) for key, values in DRAWN.items() for value in values}
    assert draw_plan(17) == draw_plan(17)
    for table in ELSEWHERE:
        drawn = {each for seed in range(2000) for each in draw_some(table, stream(seed, "more settings")).items()}
        assert drawn == {(key, value) for key, values in table.items() for value in values}
