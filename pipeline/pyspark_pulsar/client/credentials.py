"""Credentials of a connection. A token can be read where it is needed, from a file or the environment: no plan carries it."""

import os
import ssl
from pathlib import Path

from ..errors import WrongOption
from ..options import Access


def token(access: Access) -> str:
    """The token, or "" for none. WrongOption when it is not where the option says."""
    params = access.auth_params
    kind, _, rest = params.partition(":")
    if kind == "file":
        try:
            return Path("/" + rest.lstrip("/")).read_text().strip()
        except OSError as error:
            raise WrongOption(f"option pulsar.client.authParams=file:...: {error}") from None
    if kind == "env":
        if rest not in os.environ:
            raise WrongOption(f"option pulsar.client.authParams=env:{rest}: there is no such variable where this task runs")
        return os.environ[rest]
    return rest if kind == "token" else params


def tls_context(access: Access) -> ssl.SSLContext:
    """TLS context with the machine's certificates, or those of the option. WrongOption."""
    try:
        context = ssl.create_default_context(cafile=access.tls_trust_certs or None)
    except (OSError, ssl.SSLError) as error:
        raise WrongOption(f"option pulsar.client.tlsTrustCertsFilePath={access.tls_trust_certs}: {error}") from None
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # set since Python 3.13; Java accepts what it refuses
    return context
