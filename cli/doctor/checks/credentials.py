"""Certificates, keys and tokens: what has expired, what does not belong together, what cannot be read. Pure.

No secret is ever in an evidence or a remedy: files, keys of the configuration and names alone.
"""

from typing import NamedTuple

from cli.doctor.check import FAIL, OK, WARN, Check, Verdict, named

DAY_SECONDS = 86_400
EXPIRES_SOON_DAYS = 14
TOKEN_SOON_DAYS = 1


class CertificateState(NamedTuple):
    """A certificate that a setting names, or that a server shows. `problem`: it cannot be read, and why.

    `is_server`: clients compare its names with the host that they connect to, which is `host` where that is known.
    """

    source: str
    problem: str = ""
    begins_in_seconds: float = -1.0
    ends_in_seconds: float = 365.0 * DAY_SECONDS
    names: tuple[str, ...] = ()
    host: str = ""
    is_server: bool = False
    key_source: str = ""
    key_fits: bool = True
    key_problem: str = ""
    is_trusted: bool = True
    """Whether the file of trusted authorities next to it has signed it; True where there is none."""


class TokenState(NamedTuple):
    """A token that a setting names. `signature`: why the broker of this configuration would refuse it; empty: it would not."""

    source: str
    problem: str = ""
    ends_in_seconds: float | None = None
    begins_in_seconds: float = -1.0
    role: str = ""
    signature: str = ""


Certificates = tuple[CertificateState, ...]


def certificates_readable(certificates: Certificates) -> Verdict:
    wrong = [(each.source, each.problem) for each in certificates if each.problem]
    wrong += [(each.key_source, each.key_problem) for each in certificates if each.key_problem]
    if not wrong:
        return Verdict(OK, f"{len(certificates)} certificates and their keys can be read")
    source, problem = wrong[0]
    remedy = f"correct the path of {source}, let the server's user read that file (chown, chmod 600), and give it PEM form"
    return Verdict(FAIL, f"{source}: {problem}" + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""), remedy)


def certificates_in_time(certificates: Certificates) -> Verdict:
    """The one that ends first."""
    readable = [each for each in certificates if not each.problem]
    first = min(readable, key=lambda each: each.ends_in_seconds, default=None)
    if first is None:
        return Verdict(OK, "no certificate is looked at")
    later = next((each for each in readable if each.begins_in_seconds > 0), None)
    if later is not None:
        remedy = f"set the clock of this machine, or wait: {later.source} holds later"
        return Verdict(
            FAIL, f"{later.source} is not valid for another {later.begins_in_seconds / DAY_SECONDS:.1f} days", remedy
        )
    days = first.ends_in_seconds / DAY_SECONDS
    remedy = (
        f"renew the certificate of {first.source} and put it in its place, with its key: a server reads the files again "
        "by itself "
        "(tlsCertRefreshCheckDurationSec)"
    )
    if days <= 0:
        return Verdict(FAIL, f"{first.source} expired {-days:.1f} days ago: peers that verify it do not connect", remedy)
    return Verdict(
        WARN if days < EXPIRES_SOON_DAYS else OK, f"{first.source} is the first to expire, in {days:.1f} days", remedy
    )


def certificate_keys(certificates: Certificates) -> Verdict:
    wrong = next((each for each in certificates if not each.key_fits), None)
    if wrong is None:
        return Verdict(OK, "each certificate has its key")
    remedy = (
        f"put the private key in {wrong.key_source} with which {wrong.source} was requested, or have a new certificate signed"
    )
    return Verdict(FAIL, f"{wrong.key_source} is not the key of {wrong.source}: no TLS connection comes about", remedy)


def certificate_hosts(certificates: Certificates) -> Verdict:
    """A warning: clients compare it only with tlsEnableHostnameVerification, or as most programs do."""
    for each in certificates:
        if each.is_server and each.host and not each.problem and not any(_matches(name, each.host) for name in each.names):
            remedy = (
                f"have a certificate signed with {each.host} among its subject alternative names (for {each.source}), or set "
                "advertisedAddress to a name that it has"
            )
            evidence = f"{each.source} is for {named(each.names) or 'nobody'}, and clients connect to {each.host}"
            return Verdict(WARN, evidence, remedy)
    return Verdict(OK, "certificates are for the hosts that clients connect to")


def _matches(name: str, host: str) -> bool:
    name, host = name.lower(), host.lower()
    return name == host or (name.startswith("*.") and host.partition(".")[2] == name[2:])


def certificates_trusted(certificates: Certificates) -> Verdict:
    """A warning: the file of a server is that of its clients' authorities, which may be others than its own."""
    wrong = next((each for each in certificates if not each.is_trusted), None)
    if wrong is None:
        return Verdict(OK, "certificates are signed by the authorities that are trusted")
    remedy = (
        f"put the certificate of the authority that signed {wrong.source} into the file of trusted ones, or have it "
        "signed by one"
    )
    return Verdict(WARN, f"none of the trusted authorities of this configuration has signed {wrong.source}", remedy)


def tokens_readable(tokens: tuple[TokenState, ...]) -> Verdict:
    wrong = next((each for each in tokens if each.problem), None)
    if wrong is None:
        return Verdict(OK, f"{len(tokens)} tokens and keys of tokens can be read")
    remedy = (
        f"correct {wrong.source}: the file has to be there and readable; interpulse tokens create makes a token, "
        "create-secret-key a key"
    )
    return Verdict(FAIL, f"{wrong.source}: {wrong.problem}", remedy)


def tokens_in_time(tokens: tuple[TokenState, ...]) -> Verdict:
    dated = [each for each in tokens if each.ends_in_seconds is not None]
    first = min(dated, key=lambda each: each.ends_in_seconds or 0.0, default=None)
    if first is None or first.ends_in_seconds is None:
        return Verdict(OK, "no token expires")
    days, subject = first.ends_in_seconds / DAY_SECONDS, first.role or "ROLE"
    remedy = (
        f"make a new token (interpulse tokens create -s {subject} -sk KEY -e TIME), and put it where {first.source} names it"
    )
    if days <= 0:
        return Verdict(FAIL, f"the token of {first.source} (role {subject}) expired {-days:.1f} days ago", remedy)
    return Verdict(WARN if days < TOKEN_SOON_DAYS else OK, f"the token of {first.source} expires in {days:.1f} days", remedy)


def tokens_signed(tokens: tuple[TokenState, ...]) -> Verdict:
    wrong = next((each for each in tokens if each.signature), None)
    if wrong is None:
        return Verdict(OK, "tokens are signed with the key of this configuration")
    remedy = (
        f"make the token of {wrong.source} anew with the key that brokers have in tokenSecretKey or tokenPublicKey "
        "(interpulse tokens "
        "create; validate checks one), or give this broker the key of the others"
    )
    return Verdict(FAIL, f"the token of {wrong.source} would be refused: {wrong.signature}", remedy)


_C, _T = ("certificates",), ("tokens",)
CHECKS = (
    Check(
        "tls-files", _C, certificates_readable, "a certificate or key cannot be read", "correct its path and its permissions"
    ),
    Check("certificate-time", _C, certificates_in_time, "a certificate has expired, or soon does", "renew it"),
    Check("certificate-key", _C, certificate_keys, "a key does not belong to its certificate", "put the right key there"),
    Check("certificate-host", _C, certificate_hosts, "a certificate is for another host", "have one signed for this host"),
    Check(
        "certificate-trust",
        _C,
        certificates_trusted,
        "a certificate of an authority that is not trusted",
        "trust its authority",
    ),
    Check("token-readable", _T, tokens_readable, "a token, or a key of tokens, cannot be read", "correct the setting"),
    Check("token-time", _T, tokens_in_time, "a token has expired, or soon does", "make a new one"),
    Check("token-signature", _T, tokens_signed, "a token was signed with another key", "make it with the brokers' key"),
)
