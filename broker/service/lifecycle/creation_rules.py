"""Conditions under which topics are created: the policies of their namespace, else the settings. Creates nothing."""

from dataclasses import dataclass

from ...policies.policies import AutoTopicCreation
from ..catalogue.catalogue import Catalogue
from ..catalogue.topic_kinds import require_kind
from ..errors import TooManyTopics
from ..policies.namespace_policies import NamespacePolicies
from ..settings import BrokerSettings
from ..topic_name import TopicName


@dataclass(frozen=True, slots=True)
class CreationRules:
    """Rules of one broker."""

    settings: BrokerSettings
    catalogue: Catalogue
    policies: NamespacePolicies

    async def auto_creation(self, topic: TopicName) -> AutoTopicCreation:
        """Returns the rule for a missing topic. System topics are always created."""
        if topic.is_system:
            return AutoTopicCreation(True)
        of_namespace = (await self.policies.read(topic.namespace)).auto_topic_creation
        return of_namespace or self.settings.auto_topic_creation

    async def require_served(self, topic: TopicName) -> None:
        """Raises NamespaceNotFound, or NOT_ALLOWED for a kind of topic that is not served here."""
        require_kind(self.settings, topic)
        await self.catalogue.namespaces.require(topic.namespace)

    async def require_room(self, topic: TopicName, more: int) -> None:
        """Raises TooManyTopics when `more` topics, this one or its partitions, would exceed the limit. System topics do not
        count, and are made over the limit too."""
        if topic.is_system:
            return
        namespace = topic.namespace
        of_namespace = (await self.policies.read(namespace)).max_topics
        limit = self.settings.max_topics_per_namespace if of_namespace is None else of_namespace
        if limit <= 0 or await self.catalogue.stored_count(namespace) + more <= limit:
            return
        if len(await self.catalogue.list_topics(namespace)) + more > limit:
            raise TooManyTopics
