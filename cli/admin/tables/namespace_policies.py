"""The other policies of a namespace."""

from cli.admin.table import Command

COMMANDS = (
    Command("set-clusters", "NAMESPACE --clusters/-c:list!", "POST namespaces/{namespace}/replication", body="{clusters}"),
    Command("get-clusters", "NAMESPACE", "GET namespaces/{namespace}/replication", output="lines"),
    Command(
        "set-subscription-types-enabled",
        "NAMESPACE --types/-t:list!",
        "POST namespaces/{namespace}/subscriptionTypesEnabled",
        body="{types}",
    ),
    Command(
        "get-subscription-types-enabled", "NAMESPACE", "GET namespaces/{namespace}/subscriptionTypesEnabled", output="json"
    ),
    Command("remove-subscription-types-enabled", "NAMESPACE", "DELETE namespaces/{namespace}/subscriptionTypesEnabled"),
    Command(
        "set-allowed-clusters",
        "NAMESPACE --clusters/-c:list!",
        "POST namespaces/{namespace}/allowedClusters",
        body="{clusters}",
    ),
    Command("get-allowed-clusters", "NAMESPACE", "GET namespaces/{namespace}/allowedClusters", output="lines"),
    Command(
        "get-subscription-expiration-time", "NAMESPACE", "GET namespaces/{namespace}/subscriptionExpirationTime", output="json"
    ),
    Command(
        "set-subscription-expiration-time",
        "NAMESPACE -t/--time:int!",
        "POST namespaces/{namespace}/subscriptionExpirationTime",
        body="{time}",
    ),
    Command("remove-subscription-expiration-time", "NAMESPACE", "DELETE namespaces/{namespace}/subscriptionExpirationTime"),
    Command("get-anti-affinity-group", "NAMESPACE", "GET namespaces/{namespace}/antiAffinity", output="text"),
    Command(
        "set-anti-affinity-group",
        "NAMESPACE --group/-g!",
        "POST namespaces/{namespace}/antiAffinity",
        body="{group}",
        body_is_text=True,
    ),
    Command(
        "get-anti-affinity-namespaces",
        "--tenant/-p:string --cluster/-c! --group/-g!",
        "GET /admin/namespaces/{cluster}/antiAffinity/{group}?property={tenant}",
        output="lines",
    ),
    Command("delete-anti-affinity-group", "NAMESPACE", "DELETE namespaces/{namespace}/antiAffinity"),
    Command(
        "set-auto-topic-creation",
        "NAMESPACE --enable/-e --disable/-d --type/-t:string=non-partitioned --num-partitions/-n:int",
        "POST namespaces/{namespace}/autoTopicCreation",
        body={"allowAutoTopicCreation": "{enable}", "topicType": "{type}", "defaultNumPartitions": "{num-partitions}"},
        one_of=("enable", "disable"),
    ),
    Command("get-auto-topic-creation", "NAMESPACE", "GET namespaces/{namespace}/autoTopicCreation", output="json"),
    Command("remove-auto-topic-creation", "NAMESPACE", "DELETE namespaces/{namespace}/autoTopicCreation"),
    Command(
        "set-auto-subscription-creation",
        "NAMESPACE --enable/-e",
        "POST namespaces/{namespace}/autoSubscriptionCreation",
        body={"allowAutoSubscriptionCreation": "{enable}"},
    ),
    Command(
        "get-auto-subscription-creation", "NAMESPACE", "GET namespaces/{namespace}/autoSubscriptionCreation", output="json"
    ),
    Command("remove-auto-subscription-creation", "NAMESPACE", "DELETE namespaces/{namespace}/autoSubscriptionCreation"),
    Command(
        "set-bookie-affinity-group",
        "NAMESPACE --primary-group/-pg! --secondary-group/-sg:string",
        "POST namespaces/{namespace}/persistence/bookieAffinity",
        body={"bookkeeperAffinityGroupPrimary": "{primary-group}", "bookkeeperAffinityGroupSecondary": "{secondary-group}"},
    ),
    Command("get-bookie-affinity-group", "NAMESPACE", "GET namespaces/{namespace}/persistence/bookieAffinity", output="json"),
    Command("delete-bookie-affinity-group", "NAMESPACE", "DELETE namespaces/{namespace}/persistence/bookieAffinity"),
    Command("get-topic-positions", "NAMESPACE --bundle/-b:string --topic-list/-tl:texts", run="clusters:topic_positions"),
    Command(
        "set-encryption-required",
        "NAMESPACE --enable/-e --disable/-d",
        "POST namespaces/{namespace}/encryptionRequired",
        body="{enable}",
        one_of=("enable", "disable"),
    ),
    Command("get-encryption-required", "NAMESPACE", "GET namespaces/{namespace}/encryptionRequired", output="json"),
    Command(
        "set-subscription-auth-mode",
        "NAMESPACE -m/--subscription-auth-mode!",
        "POST namespaces/{namespace}/subscriptionAuthMode",
        body="{subscription-auth-mode}",
    ),
    Command("get-subscription-auth-mode", "NAMESPACE", "GET namespaces/{namespace}/subscriptionAuthMode", output="json"),
    Command(
        "get-is-allow-auto-update-schema", "NAMESPACE", "GET namespaces/{namespace}/isAllowAutoUpdateSchema", output="json"
    ),
    Command(
        "set-is-allow-auto-update-schema",
        "NAMESPACE --enable/-e --disable/-d",
        "POST namespaces/{namespace}/isAllowAutoUpdateSchema",
        body="{enable}",
        one_of=("enable", "disable"),
    ),
    Command(
        "get-schema-validation-enforce",
        "NAMESPACE -ap/--applied",
        "GET namespaces/{namespace}/schemaValidationEnforced?applied={applied}",
        output="json",
    ),
    Command(
        "set-schema-validation-enforce",
        "NAMESPACE --enable/-e --disable/-d",
        "POST namespaces/{namespace}/schemaValidationEnforced",
        body="{enable}",
        one_of=("enable", "disable"),
    ),
    Command("set-property", "NAMESPACE --key/-k! --value/-v!", "PUT namespaces/{namespace}/property/{key}/{value}"),
    Command("get-property", "NAMESPACE --key/-k!", "GET namespaces/{namespace}/property/{key}", output="plain"),
    Command("remove-property", "NAMESPACE --key/-k!", "DELETE namespaces/{namespace}/property/{key}", output="plain"),
    Command("set-properties", "NAMESPACE --properties/-p:pairs!", "PUT namespaces/{namespace}/properties", body="{properties}"),
    Command("get-properties", "NAMESPACE", "GET namespaces/{namespace}/properties", output="json"),
    Command("clear-properties", "NAMESPACE", "DELETE namespaces/{namespace}/properties"),
    Command("get-resource-group", "NAMESPACE", "GET namespaces/{namespace}/resourcegroup", output="text"),
    Command(
        "set-resource-group",
        "NAMESPACE --resource-group-name/-rgn!",
        "POST namespaces/{namespace}/resourcegroup/{resource-group-name}",
    ),
    Command("remove-resource-group", "NAMESPACE", "DELETE namespaces/{namespace}/resourcegroup"),
    Command("get-entry-filters", "NAMESPACE", "GET namespaces/{namespace}/entryFilters", output="json"),
    Command(
        "set-entry-filters",
        "NAMESPACE --entry-filters-name/-efn!",
        "POST namespaces/{namespace}/entryFilters",
        body={"entryFilterNames": "{entry-filters-name}"},
    ),
    Command("remove-entry-filters", "NAMESPACE", "DELETE namespaces/{namespace}/entryFilters"),
    Command(
        "set-dispatcher-pause-on-ack-state-persistent",
        "NAMESPACE",
        "POST namespaces/{namespace}/dispatcherPauseOnAckStatePersistent",
    ),
    Command(
        "get-dispatcher-pause-on-ack-state-persistent",
        "NAMESPACE",
        "GET namespaces/{namespace}/dispatcherPauseOnAckStatePersistent",
        output="json",
    ),
    Command(
        "remove-dispatcher-pause-on-ack-state-persistent",
        "NAMESPACE",
        "DELETE namespaces/{namespace}/dispatcherPauseOnAckStatePersistent",
    ),
)
