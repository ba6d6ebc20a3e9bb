"""Kernels that leave everything to the classes whose rows they step: the ways that they stand for."""

import pytest

from bookkeeper.write import together
from broker.connection.consumers import consumers
from broker.connection.producers import producers
from broker.topic.subscription import subscriptions


def decline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes nothing plain from now on."""
    monkeypatch.setattr(producers, "take_parts", lambda handles, sends, place, *rest: place)
    monkeypatch.setattr(together, "store_parts", lambda parts, place, *rest: place)
    monkeypatch.setattr(subscriptions, "hand_out", lambda *given: -1)
    monkeypatch.setattr(consumers, "acknowledge_each", lambda handles, mix, place, *rest: place)
    monkeypatch.setattr(consumers, "acknowledge_run", lambda *given: 0)
