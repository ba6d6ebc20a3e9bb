"""The namespace or topic that a path names. Owns nothing; refuses what is no name (BrokerError)."""

from starlette.requests import Request

from ..service.topic_name import NamespaceName, TopicName

TOPIC = "/admin/v2/persistent/{tenant}/{namespace}/{topic}"


def namespace_of(request: Request) -> NamespaceName:
    return NamespaceName.parse(f"{request.path_params['tenant']}/{request.path_params['namespace']}")


def topic_of(request: Request) -> TopicName:
    """Persistent where the path has no domain. Refusals (`answers.on_broker_error`) name it from now on."""
    params = request.path_params
    domain = params.get("domain", "persistent")
    topic = TopicName.parse(f"{domain}://{params['tenant']}/{params['namespace']}/{params['topic']}")
    request.state.topic = str(topic)
    return topic
