"""Namespaces as such: names, bundles, permissions; `COMMANDS` has those on their policies too."""

from cli.admin.table import Command
from cli.admin.tables import namespace_policies, namespace_rates_and_limits, namespace_storage

_THEMSELVES = (
    Command("list", "TENANT", "GET namespaces/{tenant}", output="lines"),
    Command("list-cluster", "TARGET", run="clusters:list_namespaces_of_cluster", hidden=True),
    Command(
        "topics",
        "NAMESPACE -m/--mode:choice(PERSISTENT|NON_PERSISTENT|ALL) -ist/--include-system-topic",
        "GET namespaces/{namespace}/topics?includeSystemTopic={include-system-topic}&mode={mode}",
        output="lines",
    ),
    Command("bundles", "NAMESPACE", "GET namespaces/{namespace}/bundles", output="json"),
    Command("destinations", "NAMESPACE", "GET namespaces/{namespace}/topics", output="lines", hidden=True),
    Command("policies", "NAMESPACE", "GET namespaces/{namespace}", output="json"),
    Command("create", "NAMESPACE --clusters/-c:list --bundles/-b:int=0", run="clusters:create_namespace"),
    Command("delete", "NAMESPACE -f/--force", "DELETE namespaces/{namespace}?force={force}"),
    Command("permissions", "NAMESPACE", "GET namespaces/{namespace}/permissions", output="map"),
    Command(
        "grant-permission",
        "NAMESPACE --role! --actions:list!",
        "POST namespaces/{namespace}/permissions/{role}",
        body="{actions}",
    ),
    Command("revoke-permission", "NAMESPACE --role!", "DELETE namespaces/{namespace}/permissions/{role}"),
    Command("subscription-permission", "NAMESPACE", "GET namespaces/{namespace}/permissions/subscription", output="map"),
    Command(
        "grant-subscription-permission",
        "NAMESPACE -s/--subscription! -rs/--roles:list!",
        "POST namespaces/{namespace}/permissions/subscription/{subscription}",
        body="{roles}",
    ),
    Command(
        "revoke-subscription-permission",
        "NAMESPACE -s/--subscription! -r/--role!",
        "DELETE namespaces/{namespace}/permissions/{subscription}/{role}",
    ),
    Command(
        "unload",
        "NAMESPACE --bundle/-b:string --destinationBroker/-d:string",
        "PUT namespaces/{namespace}/{bundle}/unload?destinationBroker={destinationBroker}",
    ),
    Command(
        "split-bundle",
        "NAMESPACE --bundle/-b:string --bundle-type/-bt:choice(LARGEST|HOT) --unload/-u "
        "--split-algorithm-name/-san:string --split-boundaries/-sb:texts",
        run="clusters:split_bundle",
    ),
    Command("unsubscribe", "NAMESPACE --sub/-s! --bundle/-b:string", "POST namespaces/{namespace}/{bundle}/unsubscribe/{sub}"),
    Command("update-migration-state", "NAMESPACE --migrated", "POST namespaces/{namespace}/migration", body="{migrated}"),
)
COMMANDS = (
    *_THEMSELVES,
    *namespace_policies.COMMANDS,
    *namespace_storage.COMMANDS,
    *namespace_rates_and_limits.COMMANDS,
)
