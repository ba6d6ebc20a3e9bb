"""What an operator asks of brokers that may be killed, parted or asleep: what came of it, for people; never an error."""

import http.client
import urllib.error
import urllib.request

from tests.clients.faults.cluster import FaultCluster

NAMESPACE = "/admin/v2/namespaces/public/default"
ANSWER_SECONDS_MAX = 10.0
REDIRECTS_MAX = 3


def asked(cluster: FaultCluster, turn: int, what: str) -> str:
    """PUT below the namespace, at one broker after the other; redirects are followed as `pulsar-admin` does."""
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
