"""Tokens for tests, made by hand, so that also those can be made that no library would make."""

import base64
import hashlib
import hmac
import json
from typing import Any

SECRET = hashlib.sha512(b"a secret of tests").digest()
CANARY = "canary-7f3a91"


def part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def in_setting(secret: bytes) -> str:
    """Secret in the form of tokenSecretKey."""
    return f"data:;base64,{base64.b64encode(secret).decode()}"


def token(role: str | None, *, secret: bytes = SECRET, alg: str = "HS256", **claims: Any) -> str:
    """Signed with HS, whatever its head says the signature is; `none`: with nothing."""
    body = claims if role is None else {"sub": role, **claims}
    signed = f"{part(json.dumps({'alg': alg}).encode())}.{part(json.dumps(body).encode())}"
    digest = {"HS384": hashlib.sha384, "HS512": hashlib.sha512}.get(alg, hashlib.sha256)
    signature = b"" if alg.lower() == "none" else hmac.new(secret, signed.encode(), digest).digest()
    return f"{signed}.{part(signature)}"
