"""Effects of policies on a loaded topic: changes that happen at once with a policy.

Decides nothing: the policies in force are `broker.policies.in_force`'s. Parts of a topic that read them whenever they need them
have no line here. (Apache: PersistentTopic.onPoliciesUpdate.)
"""

from typing import Protocol

from bookkeeper.ledgers import Quorums
from managed_ledger.contract import ManagedLedger

from ...policies.policies import EffectivePolicies, PersistencePolicy
from ..publish.publishers import Publishers
from ..subscription.subscriptions import Subscriptions


class ConfiguredTopic(Protocol):
    """Part of a topic that policies change."""

    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def publishers(self) -> Publishers: ...
    @property
    def subscriptions(self) -> Subscriptions: ...


def take_effect(topic: ConfiguredTopic, old: EffectivePolicies, new: EffectivePolicies) -> None:
    """Applies the changes from `old` to `new`, which are in force already."""
    if new.retention != old.retention:
        topic.ledger.set_retention(new.retention.age_ms, new.retention.size_bytes)
    if new.persistence != old.persistence:
        _set_persistence(topic.ledger, new.persistence)
    topic.publishers.policies_changed()
    topic.publishers.deduplication.policies_changed()
    topic.subscriptions.policies_changed()


def _set_persistence(ledger: ManagedLedger, policy: PersistencePolicy | None) -> None:
    if policy is None:
        ledger.set_persistence(Quorums(), None)
    else:
        quorums = Quorums(policy.ensemble_size, policy.write_quorum, policy.ack_quorum)
        ledger.set_persistence(quorums, policy.mark_delete_rate)
