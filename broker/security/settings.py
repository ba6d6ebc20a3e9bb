"""SecuritySettings: authentication and authorization. Keys are Apache's (broker.conf, proxy.conf). All is off by default.

Half-configured security is refused: a server that was meant to be secure must not serve everyone.
"""

from dataclasses import dataclass, field

_PACKAGE = "org.apache.pulsar.broker.authentication."
TOKEN = f"{_PACKAGE}AuthenticationProviderToken"
BASIC = f"{_PACKAGE}AuthenticationProviderBasic"
TLS = f"{_PACKAGE}AuthenticationProviderTls"
PROVIDERS = (TOKEN, BASIC, TLS)
AUTHORIZATION_PROVIDER = "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider"


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """Secrets are not part of the repr."""

    authentication_enabled: bool = False
    """Clients must authenticate."""
    authentication_providers: tuple[str, ...] = ()
    """Classes of `org.apache.pulsar.broker.authentication`: AuthenticationProviderToken, AuthenticationProviderBasic,
    AuthenticationProviderTls; several at once."""
    authentication_refresh_check_seconds: int = 60
    """Time between two looks at whether a connection's token has expired; then a new one is asked for (AUTH_CHALLENGE), and
    by the next look it has to be there."""
    anonymous_user_role: str | None = None
    """The role of clients without credentials. Empty: they are refused."""
    authenticate_original_auth_data: bool = False
    """Credentials of its client that a proxy forwards are checked here too."""
    authenticate_metrics_endpoint: bool = False
    """/metrics is for authenticated clients alone."""
    token_secret_key: str | None = field(default=None, repr=False)
    """Signs tokens with HS256 and longer: `data:;base64,...`, `file:///path`, `env:NAME`, a path or Base64."""
    token_public_key: str | None = field(default=None, repr=False)
    """Checks tokens that a private key has signed; in the same forms, DER or PEM."""
    token_public_alg: str = "RS256"
    """The algorithm of the key that tokenPublicKey holds, such as RS256 or ES256."""
    token_auth_claim: str | None = None
    """Claim that names the role. Empty: sub."""
    token_audience_claim: str | None = None
    """The claim of a token that names its audience. Empty: the audience is not checked."""
    token_audience: str | None = None
    """Value that the claim of tokenAudienceClaim has to hold."""
    token_allowed_clock_skew_seconds: int = 0
    """Permitted error of the clock that made a token."""
    basic_auth_conf: str | None = field(default=None, repr=False)
    """Users and hashes as htpasswd writes them, in the forms of tokenSecretKey."""
    authorization_enabled: bool = False
    """Grants decide what a role may do; else everybody may do everything."""
    authorization_provider: str = AUTHORIZATION_PROVIDER
    """The one way in which that is decided, by its class in Apache's."""
    authorization_allow_wildcards_matching: bool = False
    """A role that is granted as `name*`, `*name` or `*` stands for all such roles."""
    super_user_roles: tuple[str, ...] = ()
    """Roles that may do everything."""
    proxy_roles: tuple[str, ...] = ()
    """Roles that may speak for others: they name the original principal, and both must be allowed."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.authentication_providers if name not in PROVIDERS]
        if unknown and self.authentication_enabled:  # a name that nothing is made of does no harm, as with Apache
            raise ValueError(f"authenticationProviders={unknown[0]}: expected {', '.join(PROVIDERS)}")
        if self.authentication_enabled and not self.authentication_providers and not self.anonymous_user_role:
            raise ValueError("authenticationEnabled=true, and authenticationProviders is empty: no client could authenticate")
        if self.authorization_enabled and not self.authentication_enabled:
            raise ValueError("authorizationEnabled=true needs authenticationEnabled=true: no client would have a role")
        if self.authorization_enabled and self.authorization_provider != AUTHORIZATION_PROVIDER:
            raise ValueError(f"authorizationProvider={self.authorization_provider}: expected {AUTHORIZATION_PROVIDER}")
        if self.authentication_refresh_check_seconds < 1 or self.token_allowed_clock_skew_seconds < 0:
            raise ValueError("authenticationRefreshCheckSeconds: at least 1; tokenAllowedClockSkewSeconds: at least 0")
