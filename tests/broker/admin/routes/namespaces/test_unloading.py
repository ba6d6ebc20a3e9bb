"""Unloading over REST, in a standalone and beside another broker, and what is sent on to that one."""

from collections.abc import Callable, Sequence

import pytest

from broker.service.addresses import Advertised, Answer
from broker.service.errors import BundleNotFound
from broker.service.ownership.bundles import Bundle, Bundles
from broker.service.ownership.owners import SoleOwner
from broker.service.topic_name import NamespaceName, TopicName
from tests.broker.admin.admin_world import AdminWorld, play

NAMESPACE = "/admin/v2/namespaces/public/default"
DEFAULT = NamespaceName("public", "default")
FOUR = Bundles(DEFAULT, (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF))
OTHER = Answer(Advertised("pulsar://other:6650", "http://other:8080"))
RANGE = f"{NAMESPACE}/0x00000000_0x40000000"
NAMES = [f"t{index}" for index in range(12)]


class AnotherOwner(SoleOwner):
    """`Owners` of a broker beside which another has everything."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.wishes: list[str] = []

    def serves(self, topic: TopicName) -> bool:
        return False

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer | None:
        return self.answer

    async def owner(self, topic: TopicName) -> Answer | None:
        return self.answer

    async def unload(self, namespace: NamespaceName, bundle_range: str, destination: str = "") -> Answer | None:
        if FOUR.named(bundle_range) is None:
            raise BundleNotFound(str(namespace), bundle_range)
        if destination:
            await self.wish(namespace, bundle_range, destination)
        return self.answer

    async def wish(self, namespace: NamespaceName, bundle_range: str, destination: str) -> None:
        self.wishes.append(destination)

    async def split(
        self, namespace: NamespaceName, bundle_range: str, cuts: Callable[[Bundles, Bundle], Sequence[int]], *, unload: bool
    ) -> Answer | None:
        return await self.unload(namespace, bundle_range)

    async def cut(self, namespace: NamespaceName) -> Bundles | None:
        return FOUR

    async def close(self) -> None:
        """Nothing is owned."""


class ApachesLeads:
    """`LoadDriver` beside a broker of Apache's that is the leader."""

    async def apaches_leader(self) -> str:
        return "http://leader:8080"


def test_a_standalone_unloads_a_namespace_and_a_range_of_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        for name in NAMES:
            await world.done("PUT", name)
        bundle = FOUR.all()[1]
        assert (await world.call("PUT", f"{NAMESPACE}/{bundle.range}/unload")).status == 204
        left = [name for name in NAMES if not bundle.covers(TopicName.parse(name))]
        assert 0 < len(left) < len(NAMES)
        assert [TopicName.parse(name).local_name for name in world.service.catalogue.loaded_topics] == left
        assert (await world.call("PUT", f"{NAMESPACE}/unload")).status == 204
        assert not world.service.catalogue.loaded_topics

    play(scenario)


@pytest.mark.parametrize("text", ["nonsense", "0x40000000_0x00000000", "0x1_0x2"])
def test_a_range_that_is_none_is_412(text: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        refused = (412, f"Invalid bundle range: {text} is no bundle of namespace public/default")
        assert (await world.call("PUT", f"{NAMESPACE}/{text}/unload")).refused == refused
        world.service.lookup.owners = AnotherOwner(OTHER)
        assert (await world.call("PUT", f"{NAMESPACE}/{text}/unload")).refused == refused

    play(scenario)


@pytest.mark.parametrize(
    ("method", "path", "there"),
    [
        ("PUT", f"{NAMESPACE}/0x00000000_0x40000000/unload", ""),
        ("GET", "/admin/v2/persistent/public/default/t/stats?getPreciseBacklog=true", ""),
        ("PUT", "/admin/v2/persistent/public/default/new", ""),
        ("GET", "/lookup/v2/topic/persistent/public/default/t", "?authoritative=true"),
        ("GET", "/lookup/v2/topic/persistent/public/default/a%20b", "?authoritative=true"),
    ],
)
def test_a_request_for_a_topic_of_another_broker_is_redirected_to_it(method: str, path: str, there: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        world.service.lookup.owners = AnotherOwner(Answer(OTHER.address, is_redirect=True))
        answer = await world.call(method, path)
        assert (answer.status, answer.headers["location"]) == (307, f"http://other:8080{path}{there}")

    play(scenario)


def test_the_owner_is_not_told_of_a_destination_that_is_noted_here() -> None:
    """An Apache owner that is not the leader redirects the request to the leader, which would redirect it back."""

    async def scenario(world: AdminWorld) -> None:
        world.service.lookup.owners = owners = AnotherOwner(OTHER)
        answer = await world.call("PUT", f"{RANGE}/unload?destinationBroker=b:8080&authoritative=false")
        assert (answer.status, answer.headers["location"]) == (307, f"http://other:8080{RANGE}/unload?authoritative=false")
        assert owners.wishes == ["b:8080"]

    play(scenario)


def test_a_leader_of_apaches_is_told_of_a_destination(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: AdminWorld) -> None:
        world.service.lookup.owners = owners = AnotherOwner(OTHER)
        monkeypatch.setattr(world.service.load, "driver", ApachesLeads())
        answer = await world.call("PUT", f"{RANGE}/unload?destinationBroker=b:8080")
        assert (answer.status, answer.headers["location"]) == (
            307,
            f"http://leader:8080{RANGE}/unload?destinationBroker=b:8080",
        )
        assert owners.wishes == ["b:8080"]
        assert (await world.call("PUT", f"{RANGE}/unload")).headers["location"] == f"http://other:8080{RANGE}/unload"

    play(scenario)


def test_a_known_owner_is_named_by_the_lookup() -> None:
    async def scenario(world: AdminWorld) -> None:
        world.service.lookup.owners = AnotherOwner(OTHER)
        assert (await world.get("/lookup/v2/topic/persistent/public/default/t")).json["brokerUrl"] == "pulsar://other:6650"

    play(scenario)
