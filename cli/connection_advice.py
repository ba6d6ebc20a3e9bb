"""Sentences about a connection that failed: on which address, what happened, the likely cause, the remedy. Pure.

For every tool alike, over Pulsar's binary protocol and over HTTP. Standard library alone: `pulsar-admin` imports it.
"""

import base64
import errno
import json
import re
import time
from typing import NamedTuple

_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
"""First bytes of a TLS alert and of a handshake message, whatever the version."""
_TRUST_REMEDY = "tlsTrustCertsFilePath in conf/client.conf (--tlsTrustCertsFilePath, --trust-cert-file, --tls-trust-cert-path)"
_VERIFY_EXPIRED, _VERIFY_NOT_YET = 10, 9
_VERIFY_NAMES = (62, 64)
_PASSWORD = re.compile(r"//[^/@]*@")


class Protocol(NamedTuple):
    """A way to speak to a server, and where its address is set. `ports`: plain, TLS."""

    what: str
    plain: str
    tls: str
    ports: tuple[int, int]
    port_keys: str
    set_with: str


BINARY = Protocol(
    "Pulsar's binary protocol",
    "pulsar://",
    "pulsar+ssl://",
    (6650, 6651),
    "brokerServicePort, brokerServicePortTls",
    "--url (-u of pulsar-perf), or brokerServiceUrl in conf/client.conf",
)
HTTP = Protocol(
    "HTTP",
    "http://",
    "https://",
    (8080, 8443),
    "webServicePort, webServicePortTls",
    "--admin-url, or webServiceUrl in conf/client.conf",
)
_OTHER = {BINARY: HTTP, HTTP: BINARY}


def not_reached(url: str, error: OSError, protocol: Protocol, seconds: float = 0.0) -> str:
    """No connection, or no TLS on it. `seconds`: how long was waited."""
    host = _host(url)
    if _is_of("ssl", error):
        return f"{_shown(url)}: {_of_tls(error, host, protocol)}"
    return f"{_shown(url)}: {_cause(error, host, protocol, seconds)}"


def _cause(error: OSError, host: str, protocol: Protocol, seconds: float) -> str:
    plain, tls = protocol.ports
    if isinstance(error, ConnectionRefusedError):
        return (
            "connection refused: nothing listens there. Start the server (interpulse standalone), or give its address with "
            f"{protocol.set_with}; usual ports are {plain}, and {tls} for TLS"
        )
    if isinstance(error, TimeoutError):
        within = f" in {seconds:g} s" if seconds else ""
        return (
            f"no answer{within}: the host is down, a firewall drops the packets, or the server hangs. See that the "
            f"server runs and can be reached from here; the address is set with {protocol.set_with}"
        )
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return f"the connection was reset: {_wrong_port(protocol)}"
    if type(error).__name__ == "gaierror":  # of `socket`, which is imported where it is used
        return (
            f"the name {host} is not known to DNS: it is misspelt, or known elsewhere only. Correct it in {protocol.set_with}"
        )
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return f"no route to {host}: this machine's network does not lead there. The address is set with {protocol.set_with}"
    return f"{error.strerror or error}; the address is set with {protocol.set_with}"


def _wrong_port(protocol: Protocol) -> str:
    other = _OTHER[protocol]
    return (
        f"the port may be one for {other.what} ({other.port_keys}) or for TLS ({protocol.tls}), not for {protocol.what}. "
        f"Look at the port in {protocol.set_with}"
    )


def closed_at_once(url: str, protocol: Protocol) -> str:
    """The other end closed the connection before it said anything."""
    return f"{_shown(url)}: the server closed the connection without an answer: {_wrong_port(protocol)}"


def speaks_otherwise(url: str, first: bytes, protocol: Protocol, otherwise: str) -> str:
    """The answer is not of the protocol. `otherwise` is said where it is none that is known."""
    shown, other = _shown(url), _OTHER[protocol]
    if first.startswith(b"HTTP/"):
        plain, tls = protocol.ports
        return (
            f"{shown}: the server answers in HTTP: this is its web port ({HTTP.port_keys}). Give the binary port "
            f"({BINARY.port_keys}; usually {plain}, {tls} for TLS) in {protocol.set_with}"
        )
    if first.startswith(_TLS_RECORDS):
        return f"{shown}: the server speaks TLS on this port. Write {protocol.tls} in place of {protocol.plain}"
    what = f"the server does not speak {protocol.what} ({otherwise})"
    return f"{shown}: {what}: the port may be one for {other.what}, or not Pulsar's"


def credentials_refused(url: str, reason: str, token_or_other: str, now: float) -> str:
    """`reason` is the server's; `token_or_other` what was shown to it, "" for nothing; `now` in seconds since 1970."""
    cause = "the credentials are wrong, expired, or of another kind than the server takes"
    if not token_or_other:
        cause = "the server wants credentials, and none were given"
    elif expired := _expired(token_or_other, now):
        cause = f"the token expired at {expired}; interpulse tokens create makes another"
    remedy = "Set --auth-plugin and --auth-params, or authPlugin and authParams in conf/client.conf"
    return f"{_shown(url)}: refused: {reason.rstrip('.')}: {cause}. {remedy}"


def _expired(token: str, now: float) -> str:
    """Time in UTC at which a JSON Web Token expired; "" for one that has not, and for other texts."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        at = int(json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))["exp"])
    except (ValueError, KeyError, TypeError):  # no token of this form: nothing is known of its time
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) if at <= now else ""


def name_advice(reason: str) -> str:
    """The remedy for a tenant, namespace, topic or right that is not there, by the server's reason; "" for other reasons."""
    text = reason.lower()
    if "not authorized" in text:
        return "a role needs the right: `pulsar-admin namespaces grant-permission` gives it, as its admin or a super-user"
    for word, remedy in _MISSING:
        if word in text and any(sign in text for sign in ("not found", "not exist", "does not", "policies not found")):
            return remedy
    if "topic name" in text and "invalid" in text:
        return "a topic is written persistent://TENANT/NAMESPACE/NAME, or NAME alone for one of public/default"
    return ""


_NAMESPACES = "look at `pulsar-admin tenants list` and `namespaces list TENANT`; `namespaces create` makes one"
_MISSING = (
    ("tenant", "look at `pulsar-admin tenants list`; `tenants create` makes one"),
    ("namespace", _NAMESPACES),
    ("policies", _NAMESPACES),
    ("partitioned", "look at `pulsar-admin topics list-partitioned-topics NAMESPACE`"),
    (
        "topic",
        "look at `pulsar-admin topics list NAMESPACE`; `topics create` makes one where topics are not made by themselves",
    ),
)


def _is_of(module: str, error: OSError) -> bool:
    return any(each.__module__ == module for each in type(error).__mro__)


def _of_tls(error: OSError, host: str, protocol: Protocol) -> str:
    code, reason = getattr(error, "verify_code", None), str(getattr(error, "reason", "") or error)
    if code is not None:
        return _of_certificate(int(code), host, str(getattr(error, "verify_message", "")))
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
        return (
            f"TLS: {reason}: the server wants a certificate of the client. Set tlsCertificateFilePath and tlsKeyFilePath in "
            "conf/client.conf, or --auth-plugin tls with --auth-params tlsCertFile:FILE,tlsKeyFile:FILE"
        )
    if (
        "UNKNOWN_CA" in reason
        or "BAD_CERTIFICATE" in reason
        or "CERTIFICATE_EXPIRED" in reason
        or "CERTIFICATE_UNKNOWN" in reason
    ):
        return (
            f"TLS: {reason}: the server does not trust the client's certificate. See tlsCertificateFilePath in conf/client.conf"
        )
    plain, tls = protocol.ports
    return (
        f"no TLS on this port ({reason}). Write {protocol.plain} in place of {protocol.tls}, or give the port for TLS "
        f"(usually {tls}, not {plain}) in {protocol.set_with}"
    )


def _of_certificate(code: int, host: str, message: str) -> str:
    if code == _VERIFY_EXPIRED:
        return "TLS: the server's certificate has expired. Renew it on the server (tlsCertificateFilePath of the broker)"
    if code == _VERIFY_NOT_YET:
        return "TLS: the server's certificate is not valid yet: a clock is wrong, here or where it was signed"
    if code in _VERIFY_NAMES:
        return (
            f"TLS: the server's certificate is not for {host}. Give the name that is in it, or have it signed for this one; "
            "tlsEnableHostnameVerification=false does without the check"
        )
    return (
        f"TLS: the server's certificate is signed by nobody who is trusted here ({message}). Set the authority's certificate: "
        f"{_TRUST_REMEDY}"
    )


def _shown(url: str) -> str:
    """Without a password."""
    return _PASSWORD.sub("//", url)


def _host(url: str) -> str:
    rest = url.partition("://")[2].split("/")[0].rpartition("@")[2]
    return rest.partition("]")[0].lstrip("[") if rest.startswith("[") else rest.rpartition(":")[0] or rest
