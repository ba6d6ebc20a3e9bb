"""`interpulse tokens`: Apache's TokensCliUtils. Keys are written for their owner alone; nothing secret is told on stderr."""

import argparse
import base64
import json
import os
import re
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)

from broker.security.authentication.authentication import Authentication
from broker.security.authentication.key_material import read_material
from broker.security.authentication.principals import AuthenticationRefused, Shown
from broker.security.authentication.tokens import secret_key
from broker.security.settings import TOKEN, SecuritySettings
from ports.settings import BadSetting

_BITS = {"HS256": 256, "HS384": 384, "HS512": 512}
_CURVES: dict[str, ec.EllipticCurve] = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
RSA_BITS = 2048


def run_tokens(options: argparse.Namespace) -> int:
    """0; 1 for a failure, which is told on stderr."""
    actions = {
        "create-secret-key": _create_secret_key,
        "create-key-pair": _create_key_pair,
        "create": _create,
        "show": _show,
        "validate": _validate,
    }
    try:
        actions[options.action](options)
    except (BadSetting, AuthenticationRefused, OSError) as error:
        print(f"interpulse tokens {options.action}: {error}", file=sys.stderr)
        return 1
    return 0


def _create_secret_key(options: argparse.Namespace) -> None:
    bits = _BITS.get(options.signature_algorithm)
    if bits is None:
        raise BadSetting(f"--signature-algorithm {options.signature_algorithm}: a secret key is for {', '.join(_BITS)}")
    key = secrets.token_bytes(bits // 8)
    written = base64.b64encode(key) if options.base64 else key
    if options.output:
        _write(options.output, written, 0o600)
    else:
        sys.stdout.buffer.write(written + (b"\n" if options.base64 else b""))


def _create_key_pair(options: argparse.Namespace) -> None:
    name = options.signature_algorithm
    if name in _BITS:
        raise BadSetting(
            f"--signature-algorithm {name}: a pair of keys is for RS256 and longer, PS256, ES256: not for a secret"
        )
    key = ec.generate_private_key(_CURVES[name]) if name in _CURVES else rsa.generate_private_key(65537, RSA_BITS)
    _write(options.output_private_key, key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    _write(options.output_public_key, public, 0o644)


def _create(options: argparse.Namespace) -> None:
    claims: dict[str, Any] = {"sub": options.subject}
    if options.expiry_time:
        claims["exp"] = int(time.time()) + _seconds(options.expiry_time)
    headers = dict(pair.partition("=")[::2] for pair in options.headers)
    key, algorithm = _signing_key(options)
    try:
        print(jwt.encode(claims, key, algorithm, headers={"typ": None, **headers}))
    except (jwt.PyJWTError, TypeError, ValueError) as error:
        raise BadSetting(f"--signature-algorithm {algorithm}: the key is not of its kind ({type(error).__name__})") from None


def _signing_key(options: argparse.Namespace) -> tuple[Any, str]:
    if options.secret_key:
        key = secret_key("--secret-key", read_material("--secret-key", options.secret_key, os.environ))
        algorithm = options.signature_algorithm or "HS256"
        if algorithm not in key.algorithms:
            raise BadSetting(f"--signature-algorithm {algorithm}: the secret is one of {', '.join(key.algorithms)}")
        return key.key, algorithm
    if not options.private_key:
        raise BadSetting("give --secret-key or --private-key: the key that signs the token")
    material = read_material("--private-key", options.private_key, os.environ)
    is_pem = material.lstrip().startswith(b"-----BEGIN")
    try:
        private = load_pem_private_key(material, None) if is_pem else load_der_private_key(material, None)
    except (ValueError, TypeError):
        raise BadSetting("--private-key: no private key in DER or PEM form without a password") from None
    return private, options.signature_algorithm or "RS256"


def _show(options: argparse.Namespace) -> None:
    """Head and claims, as they stand in it."""
    parts = _token(options).split(".")
    try:
        head, body = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode() for part in parts[:2])
    except ValueError:
        raise BadSetting("this is not a token") from None
    print(f"{head}\n---\n{body}")


def _validate(options: argparse.Namespace) -> None:
    """Validates a token with the code that brokers use."""
    given = {"token_secret_key": options.secret_key} if options.secret_key else {"token_public_key": options.public_key}
    if not (options.secret_key or options.public_key):
        raise BadSetting("give --secret-key or --public-key: the key that checks the token")
    settings = SecuritySettings(
        authentication_enabled=True,
        authentication_providers=(TOKEN,),
        token_public_alg=options.signature_algorithm,
        **given,
    )
    token = _token(options)
    Authentication(settings, os.environ).of_connection("token", Shown(token.encode()), time.time())
    print(json.dumps(jwt.decode(token, options={"verify_signature": False})))


def _token(options: argparse.Namespace) -> str:
    if options.token:
        return str(options.token).strip()
    if options.stdin:
        return sys.stdin.read().strip()
    if options.token_file:
        return Path(options.token_file).read_text().strip()
    raise BadSetting("give the token, --stdin or --token-file")


def _seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+)([a-z]?)", text.strip().lower())
    if found is None or found[2] not in _SECONDS:
        raise BadSetting(f"--expiry-time {text}: expected a number and s, m, h, d, w or y")
    return int(found[1]) * _SECONDS[found[2]]


def _write(path: str, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
