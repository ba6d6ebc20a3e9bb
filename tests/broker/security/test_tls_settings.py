"""Settings of TLS: what is half configured is refused, with the key that is missing."""

from typing import Any

import pytest

from broker.security.tls_settings import TlsSettings


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"broker_service_port_tls": 6651}, "tlsCertificateFilePath"),
        ({"web_service_port_tls": 8443, "tls_certificate_file_path": "c"}, "tlsKeyFilePath"),
        ({"broker_service_port_tls": 70_000}, "brokerServicePortTls"),
        ({"tls_protocols": ("TLSv1.1",)}, "TLSv1.1"),
        ({"tls_cert_refresh_check_duration_sec": -1}, "tlsCertRefreshCheckDurationSec"),
        (
            {
                "broker_service_port_tls": 0,
                "tls_certificate_file_path": "c",
                "tls_key_file_path": "k",
                "tls_require_trusted_client_cert_on_connect": True,
            },
            "tlsTrustCertsFilePath",
        ),
    ],
)
def test_a_missing_or_invalid_tls_setting_is_refused_by_name(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        TlsSettings(**given)


def test_everything_is_off_by_default() -> None:
    assert TlsSettings().server(lambda: 0.0) is None
