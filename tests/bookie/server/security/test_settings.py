"""Half a configuration is refused, by the name of the key; so are unusable files."""

from pathlib import Path

import pytest

from bookie.server.security.certificate_roles import role_of
from bookie.server.security.security import Security
from bookie.server.security.settings import CERTIFICATE_ROLES, TLS_FACTORY, BookieSecuritySettings
from ports.network.tls import BadTls
from ports.settings import BadSetting, build_settings
from tests.certificates import Authority, need_openssl

TLS = {
    "tlsProviderFactoryClass": TLS_FACTORY,
    "tlsKeyStoreType": "PEM",
    "tlsKeyStore": "/key.pem",
    "tlsCertificatePath": "/bookie.pem",
}
MUTUAL = {**TLS, "tlsClientAuthentication": "true", "tlsTrustStore": "/trust.pem", "tlsTrustStoreType": "PEM"}
ROLES = {**MUTUAL, "bookieAuthProviderFactoryClass": CERTIFICATE_ROLES, "authorizedRoles": "broker,auditor"}


def without(values: dict[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if name != key}


@pytest.mark.parametrize("values", [{}, TLS, MUTUAL, ROLES])
def test_complete_security_settings_are_accepted(values: dict[str, str]) -> None:
    build_settings(BookieSecuritySettings, values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tlsKeyStore": "/key.pem"}, "tlsKeyStore is set, and tlsProviderFactoryClass is not"),
        ({"tlsCertificatePath": "/bookie.pem"}, "tlsCertificatePath is set, and tlsProviderFactoryClass is not"),
        ({"tlsTrustStore": "/trust.pem"}, "tlsTrustStore is set, and tlsProviderFactoryClass is not"),
        ({"tlsClientAuthentication": "true"}, "tlsClientAuthentication is set, and tlsProviderFactoryClass is not"),
        ({**TLS, "tlsProviderFactoryClass": "my.Factory"}, f"tlsProviderFactoryClass=my.Factory: expected {TLS_FACTORY}"),
        (without(TLS, "tlsKeyStore"), "tlsKeyStore is not set"),
        (without(TLS, "tlsCertificatePath"), "tlsCertificatePath is not set"),
        (without(TLS, "tlsKeyStoreType"), "tlsKeyStoreType=JKS: only PEM can be read here. .*keytool -importkeystore"),
        (
            {**TLS, "tlsKeyStoreType": "PKCS12"},
            "tlsKeyStoreType=PKCS12: only PEM .*`openssl pkcs12 -nodes -nocerts -in /key.pem ",
        ),
        (without(MUTUAL, "tlsTrustStore"), "tlsTrustStore is not set"),
        ({**MUTUAL, "tlsTrustStoreType": "PKCS12"}, "tlsTrustStoreType=PKCS12: only PEM .*openssl pkcs12 -nokeys"),
        (without(MUTUAL, "tlsClientAuthentication"), "tlsTrustStore is set, and .* set tlsClientAuthentication=true"),
        ({**TLS, "tlsEnabledProtocols": "TLSv1.1"}, "tlsEnabledProtocols: expected one or more of TLSv1.2, TLSv1.3"),
        ({**TLS, "tlsEnabledProtocols": ""}, "tlsEnabledProtocols: expected one or more"),
        ({**TLS, "tlsCertFilesRefreshDurationSeconds": "-1"}, "tlsCertFilesRefreshDurationSeconds: expected 0"),
        (without(ROLES, "authorizedRoles"), "authorizedRoles is not set: .* would refuse every peer"),
        (without(ROLES, "bookieAuthProviderFactoryClass"), "authorizedRoles is set, and .* set bookieAuthProviderFactoryClass"),
        ({**ROLES, "bookieAuthProviderFactoryClass": "my.Provider"}, "bookieAuthProviderFactoryClass=my.Provider: expected"),
        (
            {**TLS, "bookieAuthProviderFactoryClass": CERTIFICATE_ROLES, "authorizedRoles": "broker"},
            "tlsClientAuthentication is not true",
        ),
    ],
)
def test_half_configured_security_is_refused_by_the_name_of_the_key(values: dict[str, str], said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        build_settings(BookieSecuritySettings, values)


@need_openssl
def test_a_file_that_cannot_be_used_is_named_with_its_setting(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    bookie, other = authority.sign("bookie"), authority.sign("other")
    locked = authority.sign("locked", key_password="secret")
    (tmp_path / "text").write_text("no certificate")
    (tmp_path / "wrong").write_text("guess")
    whole = {
        **MUTUAL,
        "tlsKeyStore": str(bookie.key),
        "tlsCertificatePath": str(bookie.certificate),
        "tlsTrustStore": str(authority.certificate),
    }
    Security(build_settings(BookieSecuritySettings, whole), lambda: 0.0)
    locked_values = {"tlsKeyStore": str(locked.key), "tlsCertificatePath": str(locked.certificate)}
    wrong = [
        ({"tlsKeyStore": f"{tmp_path}/none"}, "tlsKeyStore=.*No such file"),
        ({"tlsTrustStore": f"{tmp_path}/none"}, "tlsTrustStore=.*No such file"),
        ({"tlsTrustStore": f"{tmp_path}/text"}, "tlsTrustStore=.*no certificates"),
        ({"tlsCertificatePath": f"{tmp_path}/text"}, "tlsCertificatePath=.*not a certificate and its key"),
        ({"tlsKeyStore": str(other.key)}, "tlsKeyStore=.*not a certificate and its key"),
        (locked_values, "tlsKeyStore=.* has a password"),
        ({**locked_values, "tlsKeyStorePasswordPath": f"{tmp_path}/wrong"}, "wrong password"),
    ]
    for values, said in wrong:
        with pytest.raises(BadTls, match=said):
            Security(build_settings(BookieSecuritySettings, {**whole, **values}), lambda: 0.0)


@pytest.mark.parametrize(
    ("unit", "role"),
    [
        ("0:broker", "broker"),
        ("0: broker , other;1:cluster", "broker"),
        ("1:cluster;0:broker", "broker"),
        ("broker", ""),
        ("1:broker", ""),
        ("0:", ""),
        ("0:,broker", ""),
        ("x0:broker", ""),
        ("", ""),
    ],
)
def test_a_certificates_role_is_the_first_of_part_0_of_its_unit(unit: str, role: str) -> None:
    subject = (
        (("organizationName", "0:admin"),),
        (("organizationalUnitName", unit),),
        (("organizationalUnitName", "0:second"),),
    )
    assert role_of({"subject": subject}) == role


def test_a_peer_without_a_certificate_or_a_unit_has_no_role() -> None:
    assert role_of({}) == role_of({"subject": ()}) == role_of({"subject": ((("commonName", "0:broker"),),)}) == ""
