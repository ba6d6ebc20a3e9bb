"""Roles in certificates of clients."""

import pytest

from broker.security.authentication.certificates import METHOD, CertificateProvider
from broker.security.authentication.principals import AuthenticationRefused, Principal, Shown

SUBJECT = {"subject": ((("organizationName", "west"),), (("commonName", "client-1"),))}


def test_the_role_is_the_common_name() -> None:
    assert CertificateProvider().authenticate(Shown(certificate=SUBJECT), 0.0) == Principal("client-1", METHOD)


@pytest.mark.parametrize(
    ("certificate", "code"),
    [
        (None, "INVALID_CERTS"),
        ({"subject": ()}, "INVALID_COMMON_NAME"),
        ({"subject": ((("commonName", " "),),)}, "INVALID_COMMON_NAME"),
    ],
)
def test_a_connection_without_a_name_is_refused_with_apaches_code(certificate: dict[str, object] | None, code: str) -> None:
    with pytest.raises(AuthenticationRefused) as refused:
        CertificateProvider().authenticate(Shown(certificate=certificate), 0.0)
    assert refused.value.code == code


def test_an_http_request_shows_the_certificate_of_its_connection() -> None:
    assert CertificateProvider().shown_in({}, SUBJECT) == Shown(certificate=SUBJECT)
    assert CertificateProvider().shown_in({"authorization": "x"}, None) is None
