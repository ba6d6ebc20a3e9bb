"""Tokens: AuthenticationProviderToken, JSON Web Tokens signed with a secret (HS) or a private key (RS, PS, ES).

The configured key alone decides which signatures are accepted, never the token: `none` is not among them, and a public key
is never taken for a secret (CVE-2021-22160). PyJWT is imported when a provider is made, only where tokens are used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ports.settings import BadSetting

from ..settings import SecuritySettings
from .key_material import read_material
from .principals import AuthenticationRefused, Principal, Shown

METHOD = "token"
TOKEN_BYTES_MAX = 64 * 1024
_BEARER = "Bearer "
_BAD_TOKEN = "INVALID_TOKEN"
_SECRET_BYTES_MIN = {"HS256": 32, "HS384": 48, "HS512": 64}
"""RFC 7518 3.2; a shorter key is refused, as jjwt does."""
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """Key that checks tokens, and the algorithms of its signatures."""

    key: Any
    algorithms: tuple[str, ...]

    def __repr__(self) -> str:
        return f"VerificationKey({', '.join(self.algorithms)})"


def secret_key(setting: str, material: bytes) -> VerificationKey:
    """BadSetting when it is too short to be one."""
    algorithms = tuple(name for name, size in _SECRET_BYTES_MIN.items() if len(material) >= size)
    if not algorithms:
        raise BadSetting(f"{setting}: a secret of 32 bytes or more is needed: interpulse tokens create-secret-key")
    return VerificationKey(material, algorithms)


def public_key(setting: str, material: bytes, algorithm: str) -> VerificationKey:
    """Returns the key in DER (X.509), as Apache's tools write it, or PEM. BadSetting, also when it is not of `algorithm`'s
    kind."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key

    try:
        is_pem = material.lstrip().startswith(b"-----BEGIN")
        key = load_pem_public_key(material) if is_pem else load_der_public_key(material)
    except (ValueError, UnsupportedAlgorithm):
        raise BadSetting(f"{setting}: no public key in DER or PEM form: interpulse tokens create-key-pair") from None
    match key:
        case RSAPublicKey():
            algorithms: tuple[str, ...] = _OF_RSA
        case EllipticCurvePublicKey() if key.curve.name in _CURVES:
            algorithms = (_CURVES[key.curve.name],)
        case _:
            raise BadSetting(f"{setting}: expected a key of RSA or of one of the curves {', '.join(_CURVES)}")
    if algorithm not in algorithms:
        raise BadSetting(f"tokenPublicAlg={algorithm}: {setting} is a key of {', '.join(algorithms)}")
    return VerificationKey(key, algorithms)


def verification_key(settings: SecuritySettings, environ: Mapping[str, str]) -> VerificationKey:
    """The secret, if both are set, as Apache. BadSetting."""
    if settings.token_secret_key:
        return secret_key("tokenSecretKey", read_material("tokenSecretKey", settings.token_secret_key, environ))
    if settings.token_public_key:
        material = read_material("tokenPublicKey", settings.token_public_key, environ)
        return public_key("tokenPublicKey", material, settings.token_public_alg)
    raise BadSetting("AuthenticationProviderToken: set tokenSecretKey or tokenPublicKey (interpulse tokens makes both)")


class TokenProvider:
    """A role is the claim that tokenAuthClaim names."""

    method = METHOD

    def __init__(self, settings: SecuritySettings, environ: Mapping[str, str]) -> None:
        import jwt

        self._jwt = jwt
        self._key = verification_key(settings, environ)
        self._role_claim = settings.token_auth_claim or "sub"
        self._audience_claim, self._audience = settings.token_audience_claim, settings.token_audience
        self._leeway = settings.token_allowed_clock_skew_seconds
        if self._audience_claim and not self._audience:
            raise BadSetting(f"tokenAudienceClaim={self._audience_claim}: set tokenAudience to its expected value")

    def authenticate(self, shown: Shown, now: float) -> Principal:
        if len(shown.data) > TOKEN_BYTES_MAX:
            raise AuthenticationRefused(f"a token of more than {TOKEN_BYTES_MAX} bytes", "INVALID_AUTH_DATA")
        claims = self._claims(shown.data.strip())  # clients send a token's file as it is, with the line's end
        expires_at, begins_at = _time(claims, "exp"), _time(claims, "nbf")
        if expires_at is not None and expires_at + self._leeway <= now:
            raise AuthenticationRefused("the token has expired", _BAD_TOKEN, is_expired=True)
        if begins_at is not None and begins_at - self._leeway > now:
            raise AuthenticationRefused("the token is not valid yet", _BAD_TOKEN)
        self._check_audience(claims)
        return Principal(self._role(claims), METHOD, None if expires_at is None else expires_at + self._leeway)

    def shown_in(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> Shown | None:
        given = headers.get("authorization", "")
        return Shown(given.removeprefix(_BEARER).strip().encode()) if given.startswith(_BEARER) else None

    def _claims(self, token: bytes) -> Mapping[str, Any]:
        """The signature alone is checked here: the time is an argument."""
        self._require_algorithm(token)
        options = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
        try:
            claims = self._jwt.decode(token, self._key.key, algorithms=list(self._key.algorithms), options=options)  # type: ignore[arg-type]  # a dict of its options
        except (self._jwt.PyJWTError, ValueError, RecursionError) as error:
            raise AuthenticationRefused(f"not a token of ours: {type(error).__name__}", _BAD_TOKEN) from None
        return dict(claims)

    def _require_algorithm(self, token: bytes) -> None:
        """The library gets the accepted algorithms, too; the refusal of tokens without a signature does not depend on it
        alone.
        """
        try:
            algorithm = self._jwt.get_unverified_header(token).get("alg")
        except (self._jwt.PyJWTError, ValueError, RecursionError) as error:
            raise AuthenticationRefused(f"not a token of ours: {type(error).__name__}", _BAD_TOKEN) from None
        if algorithm not in self._key.algorithms:
            reason = "the token is signed in a way that the configured key cannot have been used for"
            raise AuthenticationRefused(reason, _BAD_TOKEN)

    def _role(self, claims: Mapping[str, Any]) -> str:
        """Returns the role; the first of a list, as in Apache."""
        value = claims.get(self._role_claim)
        if isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, str) or not value.strip():
            raise AuthenticationRefused(f"the token names no role in the claim {self._role_claim!r}", _BAD_TOKEN)
        return value

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        if not self._audience_claim:
            return
        value = claims.get(self._audience_claim)
        if self._audience not in (value if isinstance(value, list) else [value]):
            reason = f"the token is for another audience (claim {self._audience_claim!r})"
            raise AuthenticationRefused(reason, "INVALID_AUDIENCES")


def _time(claims: Mapping[str, Any], claim: str) -> float | None:
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise AuthenticationRefused(f"the claim {claim!r} is no time", _BAD_TOKEN)
    return float(value)
