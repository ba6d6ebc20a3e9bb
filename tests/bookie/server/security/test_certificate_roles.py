"""Roles in the certificates of a bookie's peers."""

from collections.abc import Mapping
from typing import Any

import pytest

from bookie.server.security.certificate_roles import CertificateRoles, role_of
from bookie.server.security.guard import Refused


def certificate(unit: str) -> Mapping[str, Any]:
    return {"subject": ((("organizationalUnitName", unit),), (("commonName", "client"),))}


@pytest.mark.parametrize(
    ("unit", "role"),
    [
        ("0:broker", "broker"),
        ("0:broker,other;1:cluster", "broker"),
        ("1:cluster;0: broker ", "broker"),
        ("broker", ""),
        ("1:x", ""),
    ],
)
def test_a_role_is_the_first_name_of_part_0(unit: str, role: str) -> None:
    assert role_of(certificate(unit)) == role


def test_a_certificate_without_a_unit_names_no_role() -> None:
    assert role_of({}) == ""
    assert role_of({"subject": ((("commonName", "0:broker"),),)}) == ""


def test_only_an_authorized_role_is_admitted() -> None:
    roles = CertificateRoles(("broker",))
    assert roles.secured(certificate("0:broker"))
    with pytest.raises(Refused, match="none of authorizedRoles"):
        roles.secured(certificate("0:stranger"))
    with pytest.raises(Refused, match="names no role"):
        roles.secured({})
    with pytest.raises(Refused):
        roles.heard(b"message")
