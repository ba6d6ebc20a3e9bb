"""Options of the commands that do their work and end. Imports nothing that takes time."""

import argparse

from cli.data_place import DATA_HELP

BUNDLES = 16
COORDINATORS = 16
"""Defaults of a new cluster."""
KINDS = ("broker", "standalone", "bookie", "proxy")
"""Processes whose configuration `config` judges."""
ALGORITHMS = ("HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")


def initialize_cluster(parser: argparse.ArgumentParser) -> None:
    """Options of PulsarClusterMetadataSetup in Pulsar 4, and those older ones that scripts still have."""
    add = parser.add_argument
    add("-c", "--cluster", required=True, metavar="NAME")
    add("-md", "--metadata-store", metavar="URL", help="such as zk:host1:2181,host2:2181/chroot")
    add("-zk", "--zookeeper", metavar="SERVERS", help="the same, without zk:")
    add("-cms", "--configuration-metadata-store", metavar="URL", help="default: the metadata store")
    add("-cs", "--configuration-store", "-gzk", "--global-zookeeper", metavar="SERVERS", help="the same, without zk:")
    add("-uw", "--web-service-url", required=True, metavar="URL", help="http://host:port, or several hosts with commas")
    add("-tw", "--web-service-url-tls", metavar="URL")
    add("-ub", "--broker-service-url", metavar="URL", help="pulsar://host:port")
    add("-tb", "--broker-service-url-tls", metavar="URL")
    add("-te", "--tls-enable", action="store_true", help="other clusters connect by TLS")
    add("--auth-plugin", metavar="CLASS", help="for other clusters' connections")
    add("--auth-parameters", metavar="TEXT")
    add("-pu", "--proxy-url", metavar="URL")
    add("-pp", "--proxy-protocol", choices=["SNI"])
    add("-bn", "--default-namespace-bundle-number", type=int, default=BUNDLES, metavar="COUNT")
    add("--initial-num-transaction-coordinators", type=int, default=COORDINATORS, metavar="COUNT")
    add("--initial-num-stream-storage-containers", dest="stream_storage_containers", metavar="COUNT", help="without effect")
    service_uri = ("--existing-bk-metadata-service-uri", "--bookkeeper-metadata-service-uri")
    add(*service_uri, dest="service_uri", metavar="URI", help="an existing BookKeeper cluster, such as zk://h:2181/ledgers")
    add("--zookeeper-session-timeout-ms", type=int, default=30000, metavar="MS")
    add("-mscp", "--metadata-store-config-path", help=argparse.SUPPRESS)
    add("-cmscp", "--configuration-metadata-store-config-path", dest="configuration_store_config_path", help=argparse.SUPPRESS)


def initialize_coordinators(parser: argparse.ArgumentParser) -> None:
    """Options of PulsarTransactionCoordinatorMetadataSetup: for a cluster that was set up before there were transactions."""
    add = parser.add_argument
    add("-c", "--cluster", required=True, metavar="NAME")
    add("-cs", "--configuration-store", required=True, metavar="SERVERS", help="such as zk:host1:2181,host2:2181/chroot")
    add("--initial-num-transaction-coordinators", type=int, default=COORDINATORS, metavar="COUNT")
    add("--zookeeper-session-timeout-ms", type=int, default=30000, metavar="MS")
    add("-cmscp", "--configuration-metadata-store-config-path", dest="configuration_store_config_path", help=argparse.SUPPRESS)


def export_metadata(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-dir", metavar="DIR", help=f"of the standalone ({DATA_HELP.format('standalone')})")
    parser.add_argument("--file", required=True, metavar="FILE", help="is written")


def import_metadata(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", required=True, metavar="FILE", help="what export-metadata wrote")
    parser.add_argument("-md", "--metadata-store", required=True, metavar="URL", help="such as zk:host1:2181,host2:2181/chroot")
    parser.add_argument("--data-dir", metavar="DIR", help="where the standalone's directory is now, if it was moved too")


def config(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(required=True, metavar="WHAT", dest="config_command")
    check = what.add_parser(
        "check", help="what takes effect, what does not and why, what contradicts itself; exit code 1: refused"
    )
    diff = what.add_parser("diff", help="settings of the file that differ from the default")
    for each in (check, diff):
        each.add_argument(
            "file", metavar="FILE", help="broker.conf, standalone.conf, bookkeeper.conf or proxy.conf, Apache's or ours"
        )
        each.add_argument("--for", dest="kind", choices=KINDS, help="which process reads it (default: as the file is called)")
        each.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one key, may be repeated")
        each.add_argument("--json", action="store_true", help="for programs")
    explain = what.add_parser("explain", help="what one key does here, and its defaults")
    explain.add_argument("key", metavar="KEY")
    explain.add_argument("--json", action="store_true", help="for programs")


def tokens(parser: argparse.ArgumentParser) -> None:
    """Options of Apache's TokensCliUtils."""
    actions = parser.add_subparsers(required=True, metavar="ACTION", dest="action")
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
    show = actions.add_parser("show", help="the content of a token; its signature is not checked")
    _given(show)
    validate = actions.add_parser("validate", help="check the signature and the times of a token, and print its content")
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
