"""Facts of certificates, keys and tokens: those that a configuration names, those of client.conf, those that servers show.

No token or key leaves this module: facts name its place, its owner, and its expiry.
"""

import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.security.authentication.key_material import read_file_or_text
from broker.security.authentication.principals import AuthenticationRefused, Shown
from broker.security.authentication.tokens import TokenProvider
from broker.security.settings import SecuritySettings
from cli.client_configuration import TLS, TOKEN, ClientConfiguration, ConfigurationError, auth_method
from cli.doctor.checks.credentials import CertificateState, TokenState
from ports.settings import BadSetting

PAIRS = (
    ("tlsCertificateFilePath", "tlsKeyFilePath", "tlsTrustCertsFilePath", True),
    ("brokerClientCertificateFilePath", "brokerClientKeyFilePath", "brokerClientTrustCertsFilePath", False),
    ("bookkeeperTLSCertificateFilePath", "bookkeeperTLSKeyFilePath", "bookkeeperTLSTrustCertsFilePath", False),
    ("tlsCertificatePath", "tlsKeyStore", "tlsTrustStore", True),
)
"""Keys of certificate, private key and trusted authorities, and whether it is a server's."""
CONNECT_SECONDS = 3.0
_TOKEN_PLUGIN = "AuthenticationToken"


def certificate_facts(
    settings: Mapping[str, str], client: ClientConfiguration, shown: Sequence[str]
) -> tuple[CertificateState, ...]:
    """`shown`: `host:port` of servers behind TLS, whose certificate is looked at as they show it."""
    found = []
    for certificate, key, trust, is_server in PAIRS:
        if settings.get(certificate):
            host = settings.get("advertisedAddress", "") if is_server else ""
            found.append(_of_files(settings, certificate, key, settings.get(trust, ""), host, is_server=is_server))
        if settings.get(trust):
            found.append(_certificate(f"{trust}={settings[trust]}", settings[trust]))
    if client.tls_trust_certs:
        found.append(_certificate(f"tlsTrustCertsFilePath={client.tls_trust_certs} of client.conf", client.tls_trust_certs))
    if auth_method(client) == TLS:
        named = dict(part.partition(":")[::2] for part in client.auth_params.split(","))
        found.append(_of_files(named, "tlsCertFile", "tlsKeyFile", "", "", is_server=False))
    return (*found, *_of_servers(shown))


def _of_files(
    settings: Mapping[str, str], certificate: str, key: str, trust: str, host: str, *, is_server: bool
) -> CertificateState:
    path, key_path = settings[certificate], settings.get(key, "")
    state = _certificate(f"{certificate}={path}", path)._replace(is_server=is_server, host=host, key_source=f"{key}={key_path}")
    problem = _unreadable(key_path) if key_path else f"{key} is not set"
    if problem or state.problem:
        return state._replace(key_problem=problem)
    fits, why = _key_fits(path, key_path)
    return state._replace(key_fits=fits, key_problem=why, is_trusted=not trust or _is_signed_by(path, trust))


def _certificate(source: str, path: str) -> CertificateState:
    problem = _unreadable(path)
    if problem:
        return CertificateState(source, problem)
    try:
        return _state(source, Path(path).read_bytes())
    except ValueError as error:
        return CertificateState(source, f"no certificate in PEM form: {str(error)[:80]}")


def _unreadable(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.stat(path).st_size else "the file is empty"


def _state(source: str, pem: bytes) -> CertificateState:
    """The first of several in one file, which is the server's own, but the earliest end of all. ValueError."""
    from cryptography import x509

    loaded = x509.load_pem_x509_certificates(pem)
    now = time.time()
    return CertificateState(
        source,
        "",
        loaded[0].not_valid_before_utc.timestamp() - now,
        min(each.not_valid_after_utc.timestamp() for each in loaded) - now,
        _names(loaded[0]),
    )


def _names(certificate: Any) -> tuple[str, ...]:
    """Names that the certificate is for: subject alternative names alone, as clients look."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    hosts = names.get_values_for_type(x509.DNSName)
    return (*hosts, *map(str, names.get_values_for_type(x509.IPAddress)))


def _key_fits(certificate: str, key: str) -> tuple[bool, str]:
    """Whether the key fits, and why not, as OpenSSL loads both, which is what a server does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH" or "MISMATCH" in str(error).upper():
            return False, ""
        return True, f"no private key in PEM form, or one with a password: {error.reason or error}"
    except (OSError, ValueError) as error:
        return True, str(error)
    return True, ""


def _is_signed_by(path: str, trust: str) -> bool:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        own = x509.load_pem_x509_certificates(Path(path).read_bytes())
        authorities = x509.load_pem_x509_certificates(Path(trust).read_bytes())
    except (OSError, ValueError):
        return True  # that a file cannot be read is another check's
    for authority in authorities:
        try:
            if own[-1] == authority or own[0] == authority:
                return True
            own[-1].verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _of_servers(shown: Sequence[str]) -> Iterator[CertificateState]:
    """Certificates that servers show. Servers that refuse connections are the business of other checks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for address in dict.fromkeys(shown):
        host, _, port = address.rpartition(":")
        try:
            plain = socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS)
            with context.wrap_socket(plain, server_hostname=host) as connection:
                der = connection.getpeercert(binary_form=True)
        except (OSError, ValueError):
            continue
        if der:
            state = _state(f"the certificate that {address} shows", ssl.DER_cert_to_PEM_cert(der).encode())
            yield state._replace(is_server=True, host=host.strip("[]"))


# ---- Tokens


def token_facts(settings: Mapping[str, str], client: ClientConfiguration) -> tuple[TokenState, ...]:
    found = []
    provider, problems = _provider(settings)
    found += problems
    if _TOKEN_PLUGIN in settings.get("brokerClientAuthenticationPlugin", ""):
        parameters = settings.get("brokerClientAuthenticationParameters", "")
        found.append(_token("brokerClientAuthenticationParameters", parameters, provider))
    try:
        if auth_method(client) == TOKEN:
            found.append(_token("authParams of client.conf", client.auth_params, provider))
    except ConfigurationError as error:
        found.append(TokenState("authPlugin of client.conf", str(error)))
    return tuple(found)


def _provider(settings: Mapping[str, str]) -> tuple[TokenProvider | None, list[TokenState]]:
    named = {key: settings[key] for key in ("tokenSecretKey", "tokenPublicKey") if settings.get(key)}
    if not named:
        return None, []
    values = {"token_secret_key": named.get("tokenSecretKey"), "token_public_key": named.get("tokenPublicKey")}
    try:
        own = SecuritySettings(**values, token_public_alg=settings.get("tokenPublicAlg") or "RS256")  # type: ignore[arg-type]  # texts
        return TokenProvider(own, os.environ), []
    except (BadSetting, ValueError) as error:
        key = next(iter(named))
        return None, [TokenState(f"{key}", str(error).removeprefix(f"{key}="))]


def _token(source: str, params: str, provider: TokenProvider | None) -> TokenState:
    import jwt

    text = params.removeprefix("token:")
    if text.startswith("{"):
        return TokenState(source)  # the older form as JSON, which the tools read themselves
    named = f"{source} ({text})" if text.startswith(("file:", "env:")) else source
    try:
        token = read_file_or_text(source, text, os.environ).strip()
        claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": False, "verify_nbf": False})
    except BadSetting as error:
        return TokenState(named, str(error).removeprefix(f"{source}="))
    except (jwt.PyJWTError, ValueError) as error:
        return TokenState(named, f"no token (JSON Web Token): {type(error).__name__}")
    ends = claims.get("exp")
    state = TokenState(named, "", None if ends is None else float(ends) - time.time(), -1.0, str(claims.get("sub") or ""))
    if provider is None:
        return state
    try:
        provider.authenticate(Shown(token), min(time.time(), float(ends or time.time()) - 1))
    except AuthenticationRefused as error:
        return state._replace(signature=str(error))
    return state
