"""Tests of Apache's Python client that fail here, each with its reason. The lists only shrink."""

KNOWN: dict[str, str] = {}
"""Tests that fail on every machine."""

_KEYCLOAK = "wants the Keycloak server of build-support/docker-compose-pulsar-oauth2.yml, and a broker that trusts it"

MAY_FAIL: dict[str, str] = {
    "oauth2_test.Oauth2Test.test_base64": _KEYCLOAK,
    "oauth2_test.Oauth2Test.test_key_file": _KEYCLOAK,
    "pulsar_test.PulsarTest.test_connect_timeout": (
        "wants a network that leaves packets to 192.0.2.1 unanswered; where the connection is refused, the client tries again "
        "until its 30 s are over. No broker takes part"
    ),
}
"""Tests that fail where the machine lacks what they want."""
