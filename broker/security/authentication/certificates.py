"""Certificates: AuthenticationProviderTls. The role is the common name in the subject of a certificate that TLS has checked."""

from collections.abc import Mapping
from typing import Any

from .principals import AuthenticationRefused, Principal, Shown

METHOD = "tls"


class CertificateProvider:
    """The provider has no credentials of its own: a connection without a certificate has no principal."""

    method = METHOD

    def authenticate(self, shown: Shown, now: float) -> Principal:
        for part in (shown.certificate or {}).get("subject", ()):
            for name, value in part:
                if name == "commonName" and value.strip():
                    return Principal(value, METHOD)
        code = "INVALID_COMMON_NAME" if shown.certificate else "INVALID_CERTS"
        raise AuthenticationRefused("no certificate with a common name on the connection", code)

    def shown_in(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> Shown | None:
        return Shown(certificate=certificate) if certificate else None
