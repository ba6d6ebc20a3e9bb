"""The options of `interpulse initialize-cluster-metadata`: Apache's, short and older names too. Imports nothing heavy."""

import argparse

COMMAND = "initialize-cluster-metadata"
COORDINATOR_COMMAND = "initialize-transaction-coordinator-metadata"
BUNDLES = 16
COORDINATORS = 16


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Of PulsarClusterMetadataSetup in Pulsar 4; of the older ones, those that scripts still have."""
    parser = commands.add_parser(COMMAND, help="what a new cluster needs in ZooKeeper, as Apache's command of that name")
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


def add_coordinator_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Of PulsarTransactionCoordinatorMetadataSetup: for a cluster that was set up before there were transactions."""
    parser = commands.add_parser(COORDINATOR_COMMAND, help="transaction coordinators for a cluster that has none, as Apache's")
    add = parser.add_argument
    add("-c", "--cluster", required=True, metavar="NAME")
    add("-cs", "--configuration-store", required=True, metavar="SERVERS", help="such as zk:host1:2181,host2:2181/chroot")
    add("--initial-num-transaction-coordinators", type=int, default=COORDINATORS, metavar="COUNT")
    add("--zookeeper-session-timeout-ms", type=int, default=30000, metavar="MS")
    add("-cmscp", "--configuration-metadata-store-config-path", dest="configuration_store_config_path", help=argparse.SUPPRESS)
