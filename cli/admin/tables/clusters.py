"""Clusters, their peers, migration and failure domains; isolation of namespaces on brokers."""

from cli.admin.table import Command

CLUSTERS = (
    Command("get", "CLUSTER", "GET clusters/{cluster}", output="json"),
    Command(
        "create",
        "CLUSTER --url:string --url-secure:string --broker-url:string --broker-url-secure:string "
        "--proxy-url:string --auth-plugin:string --auth-parameters:string --proxy-protocol:choice(SNI) "
        "--tls-enable --tls-allow-insecure --tls-enable-keystore --tls-trust-store-type:string=JKS "
        "--tls-trust-store:string --tls-trust-store-pwd:string --tls-key-store-type:string=JKS "
        "--tls-key-store:string --tls-key-store-pwd:string --tls-trust-certs-filepath:string "
        "--tls-key-filepath:string --tls-certs-filepath:string "
        "--tls-factory-plugin:string=org.apache.pulsar.common.util.DefaultPulsarSslFactory "
        "--tls-factory-plugin-params:string --listener-name:string --cluster-config-file:string",
        run="cluster_data:create",
    ),
    Command(
        "update",
        "CLUSTER --url:string --url-secure:string --broker-url:string --broker-url-secure:string "
        "--proxy-url:string --auth-plugin:string --auth-parameters:string --proxy-protocol:choice(SNI) "
        "--tls-enable --tls-allow-insecure --tls-enable-keystore --tls-trust-store-type:string=JKS "
        "--tls-trust-store:string --tls-trust-store-pwd:string --tls-key-store-type:string=JKS "
        "--tls-key-store:string --tls-key-store-pwd:string --tls-trust-certs-filepath:string "
        "--tls-key-filepath:string --tls-certs-filepath:string "
        "--tls-factory-plugin:string=org.apache.pulsar.common.util.DefaultPulsarSslFactory "
        "--tls-factory-plugin-params:string --listener-name:string --cluster-config-file:string",
        run="cluster_data:update",
    ),
    Command("delete", "CLUSTER -a/--all", run="clusters:delete"),
    Command("list", "-c/--current", run="clusters:list_clusters"),
    Command("update-peer-clusters", "CLUSTER --peer-clusters:list!", "POST clusters/{cluster}/peers", body="{peer-clusters}"),
    Command("get-cluster-migration", "CLUSTER", "GET clusters/{cluster}/migrate", output="json"),
    Command(
        "update-cluster-migration",
        "CLUSTER --migrated --service-url:string --service-url-secure:string --broker-url:string --broker-url-secure:string",
        "POST clusters/{cluster}/migrate?migrated={migrated}",
        body={
            "empty": False,
            "serviceUrl": "{service-url}",
            "serviceUrlTls": "{service-url-secure}",
            "brokerServiceUrl": "{broker-url}",
            "brokerServiceUrlTls": "{broker-url-secure}",
        },
    ),
    Command("get-peer-clusters", "CLUSTER", "GET clusters/{cluster}/peers", output="json"),
    Command(
        "get-failure-domain", "CLUSTER --domain-name!", "GET clusters/{cluster}/failureDomains/{domain-name}", output="json"
    ),
    Command(
        "create-failure-domain",
        "CLUSTER --domain-name! --broker-list:list",
        "POST clusters/{cluster}/failureDomains/{domain-name}",
        body={"brokers": "{broker-list}"},
    ),
    Command(
        "update-failure-domain",
        "CLUSTER --domain-name! --broker-list:list",
        "POST clusters/{cluster}/failureDomains/{domain-name}",
        body={"brokers": "{broker-list}"},
    ),
    Command("delete-failure-domain", "CLUSTER --domain-name!", "DELETE clusters/{cluster}/failureDomains/{domain-name}"),
    Command("list-failure-domains", "CLUSTER", "GET clusters/{cluster}/failureDomains", output="lines"),
)
ISOLATION = (
    Command(
        "set",
        "CLUSTER POLICY --namespaces:list! --primary:list! --secondary:list= --auto-failover-policy-type! "
        "--auto-failover-policy-params:pairlist! --unload-scope:choice(all_matching|none|changed)",
        "POST clusters/{cluster}/namespaceIsolationPolicies/{policy}",
        body={
            "namespaces": "{namespaces}",
            "primary": "{primary}",
            "secondary": "{secondary}",
            "auto_failover_policy": {
                "parameters": "{auto-failover-policy-params}",
                "policy_type": "{auto-failover-policy-type}",
            },
            "unload_scope": "{unload-scope}",
        },
    ),
    Command("get", "CLUSTER POLICY", "GET clusters/{cluster}/namespaceIsolationPolicies/{policy}", output="json"),
    Command("list", "CLUSTER", "GET clusters/{cluster}/namespaceIsolationPolicies", output="isolation"),
    Command("delete", "CLUSTER POLICY", "DELETE clusters/{cluster}/namespaceIsolationPolicies/{policy}"),
    Command("brokers", "CLUSTER", "GET clusters/{cluster}/namespaceIsolationPolicies/brokers", output="json-each"),
    Command("broker", "CLUSTER --broker!", "GET clusters/{cluster}/namespaceIsolationPolicies/brokers/{broker}", output="json"),
)
