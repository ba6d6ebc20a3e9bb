"""Authentication: tokens, passwords, certificates, several at once; and refusals (reliability 4.4, CVE-2021-22160)."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from broker.security.authentication.authentication import Authentication
from broker.security.authentication.password_hashes import apr1, has_crypt
from broker.security.authentication.principals import AuthenticationRefused, Principal, Shown
from broker.security.settings import BASIC, TLS, TOKEN, SecuritySettings
from ports.settings import BadSetting

from ..token_maker import CANARY, SECRET, in_setting, part, token

NOW = 1_000_000.0
ALICE = "alice:$apr1$8sgqALXY$a6UCaLF2Ldt42DQc4JvD9/"
"""Made by `openssl passwd -apr1 -salt 8sgqALXY wonderland`."""
RSA_KEY = rsa.generate_private_key(65537, 2048)


def settings(*providers: str, **more: Any) -> SecuritySettings:
    return SecuritySettings(authentication_enabled=True, authentication_providers=providers or (TOKEN,), **more)


def by_secret(**more: Any) -> Authentication:
    return Authentication(settings(token_secret_key=in_setting(SECRET), **more), {})


def ask(authentication: Authentication, given: str | bytes, method: str = "token", now: float = NOW) -> Principal:
    data = given.encode() if isinstance(given, str) else given
    return authentication.of_connection(method, Shown(data), now)


def der(key: Any) -> bytes:
    encoded: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
def test_a_token_signed_with_the_secret_names_its_role(alg: str) -> None:
    assert ask(by_secret(), token("alice", alg=alg)) == Principal("alice", "token")


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_a_token_as_it_stands_in_a_file_may_end_its_line(end: str) -> None:
    assert ask(by_secret(), token("alice") + end).role == "alice"


@pytest.mark.parametrize("alg", ["RS256", "RS512", "PS256"])
def test_a_token_signed_with_a_private_key_of_rsa_names_its_role(alg: str) -> None:
    authentication = Authentication(settings(token_public_key=in_setting(der(RSA_KEY))), {})
    assert ask(authentication, jwt.encode({"sub": "alice"}, RSA_KEY, alg)).role == "alice"


@pytest.mark.parametrize(("curve", "alg"), [(ec.SECP256R1(), "ES256"), (ec.SECP384R1(), "ES384"), (ec.SECP521R1(), "ES512")])
def test_a_token_signed_with_a_private_key_of_a_curve_names_its_role(curve: ec.EllipticCurve, alg: str) -> None:
    key = ec.generate_private_key(curve)
    authentication = Authentication(settings(token_public_key=in_setting(der(key)), token_public_alg=alg), {})
    assert ask(authentication, jwt.encode({"sub": "alice"}, key, alg)).role == "alice"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE"])
def test_cve_2021_22160_a_token_without_signature_is_refused(alg: str) -> None:
    whole = token("admin", alg=alg)
    for given in (whole, whole.rstrip("."), token("admin").rpartition(".")[0] + "."):
        with pytest.raises(AuthenticationRefused):
            ask(by_secret(), given)


@pytest.mark.parametrize("by", ["secret", "public key"])
@pytest.mark.parametrize("alg", ["none", "None", "NONE", "HS256", "RS256", "", None, ["RS256"]])
def test_the_signature_algorithm_is_checked_here_and_not_by_the_library_alone(
    by: str, alg: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a library that takes every signature, or none."""
    monkeypatch.setattr(jwt, "decode", lambda token, *args, **options: {"sub": "admin"})
    public = Authentication(settings(token_public_key=in_setting(der(RSA_KEY))), {})
    authentication, right = {"secret": (by_secret(), "HS256"), "public key": (public, "RS256")}[by]
    given = ".".join(part(json.dumps(each).encode()) for each in ({"alg": alg}, {"sub": "admin"})) + "."
    if alg == right:
        assert ask(authentication, given).role == "admin"
        return
    with pytest.raises(AuthenticationRefused):
        ask(authentication, given)


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE"])
def test_cve_2021_22160_a_token_without_signature_is_refused_for_a_public_key(alg: str) -> None:
    authentication = Authentication(settings(token_public_key=in_setting(der(RSA_KEY))), {})
    signed = jwt.encode({"sub": "admin"}, RSA_KEY, "RS256")
    assert ask(authentication, signed).role == "admin"
    for given in (token("admin", alg=alg), token("admin", alg=alg).rstrip("."), signed.rpartition(".")[0] + "."):
        with pytest.raises(AuthenticationRefused):
            ask(authentication, given)


def test_cve_2021_22160_a_public_key_is_never_taken_for_a_secret() -> None:
    for public in (der(RSA_KEY), RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)):
        authentication = Authentication(settings(token_public_key=in_setting(public)), {})
        for alg in ("HS256", "HS384", "HS512"):
            with pytest.raises(AuthenticationRefused):
                ask(authentication, token("admin", secret=public, alg=alg))


def test_a_key_in_the_head_of_a_token_is_not_looked_at() -> None:
    other = rsa.generate_private_key(65537, 2048)
    numbers = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(other.public_key()))
    given = jwt.encode({"sub": "admin"}, other, "RS256", headers={"jwk": numbers, "kid": "../../etc/passwd"})
    with pytest.raises(AuthenticationRefused):
        ask(Authentication(settings(token_public_key=in_setting(der(RSA_KEY))), {}), given)


@pytest.mark.parametrize(
    "given", ["", ".", "..", "a.b.c", "\xff\xfe", token("a")[:-1] + "A", "x" * 70_000, token("a") + "=" * 9]
)
def test_an_invalid_token_is_refused_in_a_text_without_it(given: str) -> None:
    with pytest.raises(AuthenticationRefused) as refused:
        ask(by_secret(), given)
    assert len(given) < 10 or given not in str(refused.value)


@pytest.mark.parametrize("claims", [{}, {"sub": ""}, {"sub": " "}, {"sub": 7}, {"sub": []}, {"sub": [3]}, {"sub": None}])
def test_a_token_that_names_no_role_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(AuthenticationRefused):
        ask(by_secret(), token(None, **claims))


def test_a_token_is_good_until_it_expires_and_from_when_it_begins() -> None:
    given = token("alice", exp=NOW + 10, nbf=NOW - 10)
    assert ask(by_secret(), given) == Principal("alice", "token", NOW + 10)
    for now in (NOW + 10, NOW + 11, NOW - 11):
        with pytest.raises(AuthenticationRefused):
            ask(by_secret(), given, now=now)
    assert ask(by_secret(token_allowed_clock_skew_seconds=5), given, now=NOW + 12).expires_at == NOW + 15


@pytest.mark.parametrize("exp", ["soon", True, [1], float("nan")])
def test_a_time_that_is_none_is_refused(exp: Any) -> None:
    with pytest.raises(AuthenticationRefused):
        ask(by_secret(), token("alice", exp=exp))


def test_the_audience_has_to_be_ours() -> None:
    authentication = by_secret(token_audience_claim="aud", token_audience="here")
    assert ask(authentication, token("alice", aud="here")).role == "alice"
    assert ask(authentication, token("alice", aud=["there", "here"])).role == "alice"
    for claims in ({"aud": "there"}, {"aud": ["there"]}, {"aud": "her"}, {}, {"aud": {"here": 1}}):
        with pytest.raises(AuthenticationRefused):
            ask(authentication, token("alice", **claims))
    with pytest.raises(BadSetting, match="tokenAudience"):
        by_secret(token_audience_claim="aud")


def test_another_claim_may_name_the_role() -> None:
    authentication = by_secret(token_auth_claim="roles")
    assert ask(authentication, token("nobody", roles=["alice", "bob"])).role == "alice"


def test_passwords_of_an_htpasswd_file(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"# who\n{ALICE}\n")
    authentication = Authentication(settings(BASIC, basic_auth_conf=f"file://{users}"), {})
    assert ask(authentication, "alice:wonderland", "basic") == Principal("alice", "basic")
    for given in ("alice:wonderlan", "alice:", "alice", "bob:wonderland", ":", "", "#:x", "alice:" + "x" * 5000):
        with pytest.raises(AuthenticationRefused):
            ask(authentication, given, "basic")


@pytest.mark.parametrize("password", ["", "a", "p" * 15, "p" * 16, "p" * 17, "päß wörd", "x" * 100])
def test_apr1_is_what_openssl_makes_of_it(password: str) -> None:
    made = subprocess.run(
        ["openssl", "passwd", "-apr1", "-salt", "abcdefgh", "-stdin"],
        input=password + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert apr1(password, "abcdefgh") == made.stdout.strip()


@pytest.mark.skipif(not has_crypt(), reason="the system has no libcrypt")
def test_the_older_hash_of_htpasswd_is_read_where_the_system_can() -> None:
    authentication = Authentication(settings(BASIC, basic_auth_conf="data:,bob:rl.3StKT.4T8M"), {})
    assert ask(authentication, "bob:rasmuslerdorf", "basic").role == "bob"
    with pytest.raises(AuthenticationRefused):
        ask(authentication, "bob:rasmus", "basic")


def test_a_hash_that_cannot_be_checked_is_told_at_the_start() -> None:
    with pytest.raises(BadSetting, match="htpasswd -m"):
        Authentication(settings(BASIC, basic_auth_conf="data:,bob:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="), {})


def test_a_certificate_names_its_role_by_its_common_name() -> None:
    authentication = Authentication(settings(TLS), {})
    certificate = {"subject": ((("organizationName", "o"),), (("commonName", "alice"),))}
    assert authentication.of_connection("tls", Shown(certificate=certificate), NOW).role == "alice"
    for shown in (Shown(), Shown(certificate={}), Shown(b"alice"), Shown(certificate={"subject": ((("commonName", " "),),)})):
        with pytest.raises(AuthenticationRefused):
            authentication.of_connection("tls", shown, NOW)


def test_several_providers_at_once_on_http_too() -> None:
    authentication = Authentication(
        settings(TOKEN, BASIC, TLS, token_secret_key=in_setting(SECRET), basic_auth_conf=f"data:,{ALICE}"), {}
    )
    certificate = {"subject": ((("commonName", "carol"),),)}
    basic = "Basic " + base64.b64encode(b"alice:wonderland").decode()
    assert authentication.of_request({"authorization": f"Bearer {token('bob')}"}, None, NOW).role == "bob"
    assert authentication.of_request({"authorization": basic}, None, NOW).role == "alice"
    assert authentication.of_request({}, certificate, NOW).role == "carol"
    named = {"x-pulsar-auth-method-name": "basic", "authorization": f"Bearer {token('bob')}"}
    for headers in (
        {},
        {"authorization": "Bearer x"},
        {"authorization": "Basic x"},
        named,
        {"x-pulsar-auth-method-name": "sasl"},
    ):
        with pytest.raises(AuthenticationRefused):
            authentication.of_request(headers, None, NOW)


def test_only_a_client_without_credentials_is_anonymous_and_only_if_that_role_is_set() -> None:
    authentication = by_secret(anonymous_user_role="guest")
    assert authentication.of_connection("none", Shown(), NOW).role == "guest"
    assert authentication.of_request({}, None, NOW).role == "guest"
    with pytest.raises(AuthenticationRefused):
        authentication.of_request({"authorization": "Bearer x"}, None, NOW)
    with pytest.raises(AuthenticationRefused):
        by_secret().of_connection("none", Shown(), NOW)


def test_keys_come_from_files_the_environment_data_and_base64(tmp_path: Path) -> None:
    file = tmp_path / "secret.key"
    file.write_bytes(SECRET)
    plain = base64.b64encode(SECRET).decode()
    for value in (f"file://{file}", str(file), "env:OUR_KEY", plain, in_setting(SECRET), f"data:application/x;base64,{plain}"):
        authentication = Authentication(settings(token_secret_key=value), {"OUR_KEY": plain})
        assert ask(authentication, token("alice")).role == "alice"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({}, "tokenSecretKey"),
        ({"token_secret_key": "env:MISSING"}, "MISSING"),
        ({"token_secret_key": "file:///no/such/file"}, "No such file"),
        ({"token_secret_key": f"data:,{CANARY}"}, "create-secret-key"),
        ({"token_secret_key": f"{CANARY}!"}, "tokenSecretKey"),
        ({"token_public_key": f"data:,{CANARY}"}, "create-key-pair"),
        ({"token_public_key": in_setting(der(RSA_KEY)), "token_public_alg": "ES256"}, "tokenPublicAlg=ES256"),
        ({"token_public_key": in_setting(der(RSA_KEY)), "token_public_alg": "HS256"}, "tokenPublicAlg=HS256"),
    ],
)
def test_a_key_that_cannot_be_used_is_told_by_its_setting_and_never_shown(more: dict[str, Any], named: str) -> None:
    with pytest.raises(BadSetting, match=named) as error:
        Authentication(settings(**more), {})
    assert CANARY not in str(error.value)


def test_half_configured_security_is_refused() -> None:
    for wrong in (
        {"authentication_enabled": True},
        {"authorization_enabled": True},
        {"authentication_enabled": True, "authentication_providers": ("org.example.Mine",)},
        {
            "authentication_enabled": True,
            "anonymous_user_role": "x",
            "authorization_enabled": True,
            "authorization_provider": "Mine",
        },
    ):
        with pytest.raises(ValueError, match=r"authenti|authoriz"):
            SecuritySettings(**wrong)


def test_no_repr_shows_a_secret() -> None:
    shown = SecuritySettings(token_secret_key=CANARY, token_public_key=CANARY, basic_auth_conf=CANARY)
    assert CANARY not in repr(shown)
    assert CANARY not in repr(Shown(CANARY.encode()))
