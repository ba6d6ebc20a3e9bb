"""Namespace isolation policies."""

from cli.admin.table import Command

COMMANDS = (
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
