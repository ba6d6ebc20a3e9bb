"""TLS contexts of PEM files: a file that cannot be used is named with its setting, and leaves the context before in use."""

import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from ports.network.tls import BadTls, RenewedTls, TlsFile, TlsFiles, make_context, openssl_ciphers
from tests.certificates import Authority, Identity, need_openssl

pytestmark = need_openssl


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.sign("server")


@pytest.fixture(scope="module")
def locked(authority: Authority) -> Identity:
    """An identity whose key has the password "secret"."""
    return authority.sign("locked", key_password="secret")


def files(identity: Identity, trust: Path | None = None, password: Path | None = None, **more: Any) -> TlsFiles:
    return TlsFiles(
        TlsFile("certificate", str(identity.certificate)),
        TlsFile("key", str(identity.key)),
        None if password is None else TlsFile("keyPassword", str(password)),
        None if trust is None else TlsFile("trust", str(trust)),
        **more,
    )


def test_a_missing_file_is_named_with_its_setting(identity: Identity, tmp_path: Path) -> None:
    with pytest.raises(BadTls, match=r"^trust=.*gone\.pem: No such file or directory$"):
        make_context("server", files(identity, tmp_path / "gone.pem"))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\n"], ids=["nothing", "no text", "half"])
def test_authorities_that_are_no_certificates_are_named_with_their_setting(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "trust.pem").write_bytes(content)
    with pytest.raises(BadTls, match=r"^trust=.*trust\.pem: no certificates in PEM form"):
        make_context("client", TlsFiles(trust=TlsFile("trust", str(tmp_path / "trust.pem"))))


def test_a_key_of_another_certificate_is_refused(authority: Authority, identity: Identity) -> None:
    with pytest.raises(BadTls, match="KEY_VALUES_MISMATCH"):
        make_context("server", files(Identity(authority.sign("other").key, identity.certificate)))


def test_a_locked_key_is_opened_by_the_password_in_its_file(locked: Identity, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    make_context("server", files(locked, password=tmp_path / "password"))
    with pytest.raises(BadTls, match="has a password, and the setting for the file that holds it is empty"):
        make_context("server", files(locked))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"wrong", "or a wrong password"),
        (b"", "or a wrong password"),
        (b"x" * 2000, "password cannot be longer than"),
        (b"secret\xff", "^keyPassword=.*password: no password in UTF-8$"),
    ],
    ids=["wrong", "empty", "too long", "no text"],
)
def test_a_password_that_does_not_open_the_key_is_refused_with_the_reason(
    locked: Identity, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "password").write_bytes(content)
    with pytest.raises(BadTls, match=reason):
        make_context("server", files(locked, password=tmp_path / "password"))


def test_a_server_with_authorities_demands_a_certificate_unless_it_is_told_not_to(
    authority: Authority, identity: Identity
) -> None:
    trust = authority.certificate
    assert make_context("server", files(identity)).verify_mode is ssl.CERT_NONE
    assert make_context("server", files(identity, trust)).verify_mode is ssl.CERT_REQUIRED
    assert make_context("server", files(identity, trust, demands_certificate=False)).verify_mode is ssl.CERT_OPTIONAL


def test_a_client_checks_the_server_unless_it_trusts_everybody(authority: Authority) -> None:
    trust = TlsFile("trust", str(authority.certificate))
    checking = make_context("client", TlsFiles(trust=trust, checks_host=True, demands_certificate=False))
    assert (checking.verify_mode, checking.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert make_context("client", TlsFiles()).verify_mode is ssl.CERT_REQUIRED
    trusting = make_context("client", TlsFiles(trust=trust, checks_host=True, trusts_everybody=True))
    assert (trusting.verify_mode, trusting.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize(
    ("protocols", "least", "most"),
    [
        ((), ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        (("TLSv1.3",), ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
        (("TLSv1.3", "TLSv1.2"), ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
    ],
)
def test_only_the_named_versions_of_tls_are_spoken(protocols: tuple[str, ...], least: object, most: object) -> None:
    context = make_context("client", TlsFiles(protocols=protocols))
    assert (context.minimum_version, context.maximum_version) == (least, most)


def test_names_of_ciphers_are_those_of_java_or_of_openssl(authority: Authority) -> None:
    names = openssl_ciphers(
        (
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "AES256-GCM-SHA384",
            "TLS_AES_128_GCM_SHA256",
        )
    )
    assert names == "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:AES256-GCM-SHA384:TLS_AES_128_GCM_SHA256"
    server = authority.sign("server")
    found = {each["name"] for each in make_context("server", files(server, ciphers=names)).get_ciphers()}
    assert {"ECDHE-RSA-AES128-GCM-SHA256", "AES256-GCM-SHA384"} <= found
    assert "ECDHE-RSA-AES256-GCM-SHA384" not in found
    with pytest.raises(BadTls, match="tlsCiphers"):
        make_context("server", files(server, ciphers="NONSENSE"))


class Renewal:
    """Files of an identity of its own, served from a clock that is set by hand."""

    def __init__(self, authority: Authority, directory: Path, seconds: float = 60.0) -> None:
        self.now = 0.0
        made = authority.sign("renewed")
        self.identity = Identity(directory / "key.pem", directory / "certificate.pem")
        self.replace(made)
        self.tls = RenewedTls("server", files(self.identity), seconds, lambda: self.now)
        self.first = self.tls.context()

    def replace(self, other: Identity) -> None:
        """Put other files under the same names, as Kubernetes does."""
        for old, new in ((self.identity.key, other.key), (self.identity.certificate, other.certificate)):
            (old.parent / "new").write_bytes(new.read_bytes())
            os.replace(old.parent / "new", old)

    def is_renewed(self, at: float) -> bool:
        self.now = at
        return self.tls.context() is not self.first


def test_renewed_files_are_taken_up_when_they_are_looked_at_again(authority: Authority, tmp_path: Path) -> None:
    renewal = Renewal(authority, tmp_path)
    assert not renewal.is_renewed(at=60), "the files are the same"
    renewal.replace(authority.sign("newer"))
    assert not renewal.is_renewed(at=119)
    assert renewal.is_renewed(at=120)


def test_files_are_never_looked_at_again_where_the_interval_is_0(authority: Authority, tmp_path: Path) -> None:
    renewal = Renewal(authority, tmp_path, seconds=0)
    renewal.replace(authority.sign("newer"))
    assert not renewal.is_renewed(at=1e9)


def test_files_that_vanish_or_do_not_fit_leave_the_old_ones_in_use_until_they_fit(authority: Authority, tmp_path: Path) -> None:
    renewal, newer = Renewal(authority, tmp_path), authority.sign("newer")
    renewal.identity.key.unlink()
    assert not renewal.is_renewed(at=60)
    renewal.identity.key.write_bytes(newer.key.read_bytes())
    assert not renewal.is_renewed(at=120), "the certificate is still the one of the old key"
    renewal.replace(newer)
    assert renewal.is_renewed(at=180)


def test_a_file_that_vanishes_while_it_is_loaded_leaves_the_old_ones_in_use(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same renewal has seen it a moment before."""
    renewal = Renewal(authority, tmp_path)
    renewal.replace(authority.sign("newer"))
    monkeypatch.setattr("ports.network.tls._check_readable", lambda file: renewal.identity.key.unlink(missing_ok=True))
    assert not renewal.is_renewed(at=60)
