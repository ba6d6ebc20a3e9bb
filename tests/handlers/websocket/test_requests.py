"""Paths, queries and credentials of WebSocket requests."""

import base64

import pytest

from handlers.websocket.errors import Refused
from handlers.websocket.requests import Kind, Proof, asked, proof_of


@pytest.mark.parametrize(
    ("target", "kind", "topic", "subscription"),
    [
        ("/ws/v2/producer/persistent/a/b/t", Kind.PRODUCER, "persistent://a/b/t", ""),
        ("/ws/v2/producer/persistent/a/b/x%2Fy", Kind.PRODUCER, "persistent://a/b/x/y", ""),
        ("/ws/v2/producer/persistent/a/b/x/y", Kind.PRODUCER, "persistent://a/b/x/y", ""),
        ("/ws/v2/consumer/persistent/a/b/t/s%2F1?x=y", Kind.CONSUMER, "persistent://a/b/t", "s/1"),
        ("/ws/v2/reader/non-persistent/a/b/t", Kind.READER, "non-persistent://a/b/t", ""),
        ("/ws/producer/persistent/a/cluster/b/t", Kind.PRODUCER, "persistent://a/b/t", ""),
        ("/ws/consumer/persistent/a/cluster/b/t/s", Kind.CONSUMER, "persistent://a/b/t", "s"),
        ("/ws/reader/persistent/a/cluster/b/t", Kind.READER, "persistent://a/b/t", ""),
    ],
)
def test_a_path_names_the_session(target: str, kind: Kind, topic: str, subscription: str) -> None:
    found = asked(target)
    assert (found.kind, found.topic, found.subscription) == (kind, topic, subscription)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/ws", 404),
        ("/ws/v2", 404),
        ("/ws/v2/other/persistent/a/b/t", 404),
        ("/admin/v2/clusters", 404),
        ("/ws/v2/producer/persistent/a/b", 400),
        ("/ws/v2/producer/permanent/a/b/t", 400),
        ("/ws/v2/consumer/persistent/a/b/t", 400),
        ("/ws/v2/consumer/persistent/a/b/t/", 400),
        ("/ws/v2/producer/persistent/a/b/t?" + "&".join(f"p{n}=1" for n in range(100)), 400),
        ("/ws/v2/producer/persistent/a/b/t?producerName=%ff", 400),
    ],
)
def test_another_path_is_refused_with_a_status(target: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        asked(target)
    assert refused.value.status == status


def test_credentials_come_from_the_header_then_the_parameter_then_the_certificate() -> None:
    basic = base64.b64encode(b"me:secret").decode()
    assert proof_of({"authorization": "Bearer abc"}, {"token": "other"}, has_certificate=True) == Proof("token", b"abc")
    assert proof_of({}, {"token": "abc"}, has_certificate=True) == Proof("token", b"abc")
    assert proof_of({"authorization": f"Basic {basic}"}, {}, has_certificate=False) == Proof("basic", b"me:secret")
    assert proof_of({"authorization": "Basic %%%"}, {}, has_certificate=False) == Proof("basic", b"")
    assert proof_of({}, {}, has_certificate=True) == Proof("tls")
    assert proof_of({}, {}, has_certificate=False) == Proof()
