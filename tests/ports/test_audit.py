"""Every mutation over REST has one line of the audit log; nothing secret is in it."""

import json
import logging

import pytest

from ports.audit import shown_body, shown_path
from tests.broker.admin.admin_world import AdminWorld, play

SECRET = "canary-4711"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "audit"]


def test_a_mutation_has_a_line_with_who_what_from_where_and_how_it_ended(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        caplog.set_level(logging.INFO, "audit")
        path = "/admin/v2/namespaces/public/default/retention"
        await world.call("POST", path, {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1})
        (told,) = lines(caplog)
        assert told.startswith('what="admin request" who=anonymous origin=unknown method=POST')
        assert f"path={path} outcome=done status=204" in told
        assert 'body="{\\"retentionTimeInMinutes\\":5,\\"retentionSizeInMB\\":-1}"' in told

    play(scenario)


def test_a_refused_call_is_audited_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        caplog.set_level(logging.INFO, "audit")
        await world.call("DELETE", "/admin/v2/namespaces/no/such")
        (told,) = lines(caplog)
        assert "outcome=refused status=404" in told
        assert "reason=" in told

    play(scenario)


def test_a_read_is_not_audited(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        caplog.set_level(logging.INFO, "audit")
        await world.get("/admin/v2/namespaces/public")
        assert lines(caplog) == []

    play(scenario)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/admin/v2/brokers/configuration/maxTenants/5", "/admin/v2/brokers/configuration/maxTenants/5"),
        (
            f"/admin/v2/brokers/configuration/brokerClientAuthenticationParameters/{SECRET}",
            "/admin/v2/brokers/configuration/brokerClientAuthenticationParameters/*****",
        ),
        (f"/admin/v2/brokers/configuration/tls%4BeyStorePassword/{SECRET}", "tls%4BeyStorePassword/*****"),
    ],
)
def test_the_value_of_a_secret_setting_is_not_told(path: str, shown: str) -> None:
    told = shown_path({"raw_path": path.encode(), "query_string": b"a=b"})
    assert told.endswith(f"{shown}?a=b")
    assert SECRET not in told


def test_members_of_a_body_that_are_secrets_are_masked_at_any_depth() -> None:
    body = {"serviceUrl": "http://a", "inner": [{"brokerClientAuthenticationParameters": SECRET, "tlsKeyStorePassword": ""}]}
    told = shown_body(json.dumps(body).encode(), 100)
    assert "http://a" in told
    assert SECRET not in told
    assert '"brokerClientAuthenticationParameters":"*****","tlsKeyStorePassword":""' in told


def test_a_body_that_is_long_or_no_json_is_told_by_its_size() -> None:
    assert shown_body(b"\x00\x01", 2) == "2 bytes"
    assert shown_body(b"{}", 5000) == "5000 bytes"
