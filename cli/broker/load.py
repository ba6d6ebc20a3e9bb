"""The composition of a broker's load driver, and how a bundle is moved: by asking its owner over REST to give it up."""

from dataclasses import dataclass
from functools import partial

from broker.admin.rest.answers import Refusal
from broker.admin.rest.elsewhere import ask
from broker.errors import BrokerError
from broker.service.broker_service import BrokerService
from broker.service.load.auto_split import AutoSplit
from broker.service.load.board import LoadBoard
from broker.service.load.leader import LoadLeader, MoveFailed
from broker.service.load.load_driver import LoadDriver
from broker.service.load.placement.rules_driver import PlacementPolicies
from broker.service.load.reporter import LoadReporter, ServedTopics
from broker.service.load.settings import LoadSettings
from broker.service.load.shedding import Move
from broker.service.neighbours.members import Members, parse_broker_data
from broker.service.ownership.namespace_bundles import NamespaceBundles
from broker.service.topic_name import NamespaceName
from metadata.claim_driver import Claim
from ports.clock import Clock
from ports.metrics.machine_usage import LinuxUsage


@dataclass(frozen=True, slots=True)
class LoadSurroundings:
    """Parts of the driver beside the service. `claim`: the broker's claim to be the leader."""

    claim: Claim
    members: Members
    bundles: NamespaceBundles
    board: LoadBoard
    policies: PlacementPolicies
    clock: Clock


def load_driver(service: BrokerService, settings: LoadSettings, around: LoadSurroundings) -> LoadDriver:
    """Load driver of one broker; not started."""
    own_id, board = around.members.own_id, around.board
    splitting = AutoSplit(settings, service.splits)
    usage = LinuxUsage(settings.load_balancer_override_broker_nic_speed_gbps)
    served = ServedTopics(service.catalogue.loaded_topics, around.bundles.known_of)
    reporter = LoadReporter(own_id, board, settings, around.clock, usage, served, splitting.on_look)
    carry_out = partial(move_bundle, service, around.members)
    leader = LoadLeader(around.claim, around.members, board, around.policies, settings, carry_out)
    return LoadDriver(own_id, board, reporter, leader)


async def move_bundle(service: BrokerService, members: Members, move: Move) -> None:
    """The source gives it up, for the destination if there is one. MoveFailed."""
    namespace, _, bundle_range = move.bundle.rpartition("/")
    destination = move.destination or ""
    try:
        if await service.lookup.owners.unload(NamespaceName(*namespace.split("/")), bundle_range, destination) is None:
            return
        data = await members.data(move.source)
        if data is None:
            raise MoveFailed(f"{move.source} is not registered any more")
        path = f"/admin/v2/namespaces/{namespace}/{bundle_range}/unload"
        await ask(service.lookup.neighbours, parse_broker_data(data, ""), "PUT", path)
    except BrokerError as error:
        raise MoveFailed(error.message) from error
    except Refusal as refusal:
        raise MoveFailed(refusal.reason) from refusal
