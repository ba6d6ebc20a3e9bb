"""Requests of an operator to the brokers of a cluster under faults."""

import http.client
import json
import urllib.error
import urllib.request

from tests.clients.cluster.faults.cluster import FaultCluster
from tests.clients.cluster.faults.members import Member

NAMESPACE = "/admin/v2/namespaces/public/default"
ANSWER_SECONDS_MAX = 10.0
REDIRECTS_MAX = 3


def asked(cluster: FaultCluster, turn: int, what: str) -> str:
    """PUT below the namespace, at one broker after the other; redirects are followed as `pulsar-admin` does. Returns the
    outcome as text for people: the broker may be killed, parted or asleep."""
    broker = cluster.brokers[turn % len(cluster.brokers)]
    url = f"http://{broker.address}:8080{NAMESPACE}/{what}"
    for _ in range(REDIRECTS_MAX):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=ANSWER_SECONDS_MAX) as answer:
                return f"{what} at {broker.name}: {answer.status}"
        except urllib.error.HTTPError as answer:
            with answer:
                if answer.code != 307:
                    return f"{what} at {broker.name}: {answer.code} {answer.read(200)!r}"
                url = answer.headers["Location"]
        except (OSError, http.client.HTTPException) as error:
            return f"{what} at {broker.name}: {error}"
    return f"{what} at {broker.name}: redirected {REDIRECTS_MAX} times"


def serving(cluster: FaultCluster, topic: str, by: Member) -> Member | None:
    """The owner of a topic as a broker that is there knows it; None while it does not."""
    url = f"http://{by.address}:8080/lookup/v2/topic/{topic.replace('://', '/')}"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS_MAX) as answer:
            owner = json.loads(answer.read())["brokerUrl"]
    except urllib.error.HTTPError as answer:
        answer.close()
        return None
    except (OSError, http.client.HTTPException):
        return None
    return next(each for each in cluster.brokers if owner == f"pulsar://{each.address}:6650")
