"""The options of `interpulse tokens`, which are Apache's. Imports nothing of what they do."""

import argparse
from typing import Any

COMMAND = "tokens"
ALGORITHMS = ("HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")


def add_command(commands: Any) -> None:
    tokens = commands.add_parser(COMMAND, help="make, show and check tokens, and the keys that sign them")
    actions = tokens.add_subparsers(required=True, metavar="ACTION", dest="action")
    secret = actions.add_parser("create-secret-key", help="a secret for HS256 and longer")
    _algorithm(secret, "HS256")
    secret.add_argument("-o", "--output", metavar="FILE", help="instead of stdout")
    secret.add_argument("-b", "--base64", action="store_true", help="in Base64")
    pair = actions.add_parser("create-key-pair", help="a private key, which signs, and its public key, which checks")
    _algorithm(pair, "RS256")
    pair.add_argument("--output-private-key", required=True, metavar="FILE")
    pair.add_argument("--output-public-key", required=True, metavar="FILE")
    create = actions.add_parser("create", help="a token for a role, on stdout")
    _algorithm(create, "")
    create.add_argument("-s", "--subject", required=True, metavar="ROLE")
    create.add_argument("-e", "--expiry-time", metavar="TIME", help="such as 30s, 5m, 1h, 3d, 10y; for ever if not given")
    create.add_argument("-hs", "--headers", action="append", default=[], metavar="KEY=VALUE")
    create.add_argument("-sk", "--secret-key", metavar="KEY", help="data:;base64,..., file:///path, env:NAME, a path or Base64")
    create.add_argument("-pk", "--private-key", metavar="KEY", help="in the same forms")
    show = actions.add_parser("show", help="what a token says; its signature is not checked")
    _given(show)
    validate = actions.add_parser("validate", help="check the signature and the times of a token, and say what it says")
    _algorithm(validate, "RS256")
    _given(validate)
    validate.add_argument("-sk", "--secret-key", metavar="KEY")
    validate.add_argument("-pk", "--public-key", metavar="KEY")


def _algorithm(parser: argparse.ArgumentParser, default: str) -> None:
    told = f" ({default})" if default else " (HS256 with a secret key, RS256 with a private one)"
    parser.add_argument("-a", "--signature-algorithm", choices=ALGORITHMS, default=default or None, help="of" + told)


def _given(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("token", nargs="?", help="or one of the following")
    parser.add_argument("-i", "--stdin", action="store_true", help="read the token from there")
    parser.add_argument("-f", "--token-file", metavar="FILE")
