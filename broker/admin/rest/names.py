"""Names in paths (a cluster, a namespace, a topic), and lists of names. Refuses invalid names (BrokerError)."""

from collections.abc import Iterable

from starlette.requests import Request

from metadata.store import MetadataStore
from ports.loop.slices import in_slices

from ...service.catalogue.topic_lists import NAMES_PER_SLICE
from ...service.ownership.bundles import parse_range
from ...service.topic_name import NamespaceName, TopicName
from .answers import Refusal

TOPIC = "/admin/v2/persistent/{tenant}/{namespace}/{topic}"


def namespace_of(request: Request) -> NamespaceName:
    return NamespaceName.parse(f"{request.path_params['tenant']}/{request.path_params['namespace']}")


async def require_cluster(request: Request, store: MetadataStore, status: int = 412) -> str:
    """Refused with `status` when there is none of that name (Apache: validateClusterExistAsync)."""
    cluster = str(request.path_params["cluster"])
    if not await store.exists(f"/admin/clusters/{cluster}"):
        raise Refusal(status, f"Cluster {cluster} does not exist.")
    return cluster


def topic_of(request: Request) -> TopicName:
    """Returns the topic, of the domain in the path; persistent where it has none. Refusals (`answers.on_broker_error`) name it
    from now on."""
    params = request.path_params
    path = request.scope["path"]
    domain = params.get("domain") or ("non-persistent" if path.startswith("/admin/v2/non-persistent/") else "persistent")
    topic = TopicName.parse(f"{domain}://{params['tenant']}/{params['namespace']}/{params['topic']}")
    request.state.topic = str(topic)
    return topic


async def full_names(topics: Iterable[TopicName]) -> list[str]:
    """Returns full names, made in slices."""
    return [str(topic) async for topic in in_slices(topics, NAMES_PER_SLICE)]


async def names_in(namespace: NamespaceName, bundle: str | None, topics: Iterable[TopicName]) -> list[str]:
    """Full names of those in the bundle of this range; of all where no bundle is named; read in slices."""
    if not bundle:
        return await full_names(topics)
    cut = parse_range(namespace, bundle)
    if cut is None:
        return []
    return [str(topic) async for topic in in_slices(topics, NAMES_PER_SLICE) if cut.covers(topic)]
