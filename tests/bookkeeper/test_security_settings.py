"""TLS with bookies is configured as a whole or not at all; half of a configuration is refused with the key that lacks."""

import pytest

from bookkeeper.security_settings import BookKeeperSecuritySettings
from ports.network.tls import BadTls
from ports.settings import BadSetting, build_settings

WHOLE = {
    "bookkeeperTLSClientAuthentication": "true",
    "bookkeeperTLSKeyFilePath": "/no/such/certs/key.pem",
    "bookkeeperTLSCertificateFilePath": "/no/such/certs/broker.pem",
    "bookkeeperTLSTrustCertsFilePath": "/no/such/certs/ca.pem",
}
FILES = [key for key in WHOLE if key.endswith("Path")]


def settings_of(values: dict[str, str]) -> BookKeeperSecuritySettings:
    return build_settings(BookKeeperSecuritySettings, values)


def test_without_settings_bookies_are_spoken_to_in_the_clear() -> None:
    assert settings_of({}).tls(lambda: 0.0) is None


def test_a_whole_configuration_names_the_first_file_that_is_missing() -> None:
    with pytest.raises(BadTls, match=r"bookkeeperTLSCertificateFilePath=/no/such/certs/broker\.pem: No such file"):
        settings_of(WHOLE).tls(lambda: 0.0)


@pytest.mark.parametrize("key", FILES)
def test_tls_without_one_of_its_files_is_refused_with_the_key(key: str) -> None:
    with pytest.raises(BadSetting, match=f"{key} is not set"):
        settings_of({each: value for each, value in WHOLE.items() if each != key})


@pytest.mark.parametrize("key", FILES)
def test_a_file_without_tls_is_refused_since_bookies_would_be_spoken_to_in_the_clear(key: str) -> None:
    with pytest.raises(BadSetting, match=f"{key} is set, and bookies would be spoken to in the clear"):
        settings_of({key: WHOLE[key]})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bookkeeperTLSProviderFactoryClass", "com.example.Factory"),
        ("bookkeeperTLSKeyFileType", "JKS"),
        ("bookkeeperTLSTrustCertTypes", "PKCS12"),
        ("bookkeeperTlsCertFilesRefreshDurationSeconds", "-1"),
        ("bookkeeperClientAuthenticationPlugin", "com.example.Plugin"),
    ],
)
def test_a_value_that_nothing_here_reads_is_refused_with_its_key(key: str, value: str) -> None:
    with pytest.raises(BadSetting, match=key):
        settings_of({**WHOLE, key: value})


def test_pem_is_taken_in_small_letters_too() -> None:
    settings_of({**WHOLE, "bookkeeperTLSKeyFileType": "pem"})
