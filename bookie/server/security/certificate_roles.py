"""Roles in certificates: who a peer is, by the subject of the certificate that it showed (BookieAuthZFactory, CertUtils). Pure.

A subject's first OU holds parts such as `0:role,another;1:cluster`; the part 0 names roles, of which Apache looks at the first.
"""

import re
from collections.abc import Mapping
from typing import Any

from bookie.server.security.guard import Refused

_PART = re.compile(r"([0-9]+):(.*)")
_ROLES = "0"


def role_of(certificate: Mapping[str, Any]) -> str:
    """Role in a certificate as `ssl.SSLSocket.getpeercert` describes it; empty when it names none."""
    for (name, value), *_ in certificate.get("subject", ()):
        if name == "organizationalUnitName":
            parts = (_PART.match(part) for part in value.split(";"))
            named = {part[1]: part[2] for part in parts if part is not None}
            return named.get(_ROLES, "").split(",")[0].strip()
    return ""


class CertificateRoles:
    """The authentication of one peer by its certificate: no messages are exchanged."""

    plugin = "BookieAuthZFactory"

    def __init__(self, authorized_roles: tuple[str, ...]) -> None:
        self._authorized_roles = authorized_roles

    def secured(self, certificate: Mapping[str, Any]) -> bool:
        """Check the role. Refused, with the certificate's lack."""
        role = role_of(certificate)
        if not role:
            raise Refused("the certificate names no role (OU=0:role)")
        if role not in self._authorized_roles:
            raise Refused(f"the certificate's role {role[:256]!r} is none of authorizedRoles")
        return True

    def heard(self, payload: bytes) -> tuple[bytes, bool]:
        raise Refused("a certificate is wanted, not a message")
