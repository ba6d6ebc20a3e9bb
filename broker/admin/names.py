"""The cluster, namespace or topic that a path names. Owns nothing; refuses what is no name (BrokerError)."""

from starlette.requests import Request

from metadata.store import MetadataStore

from ..service.topic_name import NamespaceName, TopicName
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
    """Of the domain in the path; persistent where it has none. Refusals (`answers.on_broker_error`) name it from now on."""
    params = request.path_params
    path = request.scope["path"]
    domain = params.get("domain") or ("non-persistent" if path.startswith("/admin/v2/non-persistent/") else "persistent")
    topic = TopicName.parse(f"{domain}://{params['tenant']}/{params['namespace']}/{params['topic']}")
    request.state.topic = str(topic)
    return topic
