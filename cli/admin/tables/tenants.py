"""Tenants; groups of namespaces that share rates; quotas of bundles."""

from cli.admin.table import Command

TENANTS = (
    Command("list", request="GET tenants", output="lines"),
    Command("get", "TENANT", "GET tenants/{tenant}", output="json"),
    Command("create", "TENANT --admin-roles/-r:list --allowed-clusters/-c:list", run="clusters:create_tenant"),
    Command("update", "TENANT --admin-roles/-r:list --allowed-clusters/-c:list", run="clusters:update_tenant"),
    Command("delete", "TENANT -f/--force", "DELETE tenants/{tenant}?force={force}"),
)
RESOURCE_GROUPS = (
    Command("list", request="GET resourcegroups", output="lines"),
    Command("get", "RESOURCEGROUPNAME", "GET resourcegroups/{resourcegroupname}", output="json"),
    Command(
        "create",
        "RESOURCEGROUPNAME --msg-publish-rate/-mp:int --byte-publish-rate/-bp:long "
        "--msg-dispatch-rate/-md:int --byte-dispatch-rate/-bd:long",
        "PUT resourcegroups/{resourcegroupname}",
        body={
            "publishRateInMsgs": "{msg-publish-rate}",
            "publishRateInBytes": "{byte-publish-rate}",
            "dispatchRateInMsgs": "{msg-dispatch-rate}",
            "dispatchRateInBytes": "{byte-dispatch-rate}",
        },
    ),
    Command(
        "update",
        "RESOURCEGROUPNAME --msg-publish-rate/-mp:int --byte-publish-rate/-bp:long "
        "--msg-dispatch-rate/-md:int --byte-dispatch-rate/-bd:long",
        "PUT resourcegroups/{resourcegroupname}",
        body={
            "publishRateInMsgs": "{msg-publish-rate}",
            "publishRateInBytes": "{byte-publish-rate}",
            "dispatchRateInMsgs": "{msg-dispatch-rate}",
            "dispatchRateInBytes": "{byte-dispatch-rate}",
        },
    ),
    Command("delete", "RESOURCEGROUPNAME", "DELETE resourcegroups/{resourcegroupname}"),
)
RESOURCE_QUOTAS = (
    Command(
        "get",
        "--namespace/-n:string --bundle/-b:string",
        "GET resource-quotas/{namespace}/{bundle}",
        output="json",
        together=("namespace", "bundle"),
    ),
    Command(
        "set",
        "--namespace/-n:string --bundle/-b:string --msgRateIn/-mi:double! --msgRateOut/-mo:double! "
        "--bandwidthIn/-bi:double! --bandwidthOut/-bo:double! --memory/-mem:double! --dynamic/-d",
        "POST resource-quotas/{namespace}/{bundle}",
        body={
            "msgRateIn": "{msgRateIn}",
            "msgRateOut": "{msgRateOut}",
            "bandwidthIn": "{bandwidthIn}",
            "bandwidthOut": "{bandwidthOut}",
            "memory": "{memory}",
            "dynamic": "{dynamic}",
        },
        together=("namespace", "bundle"),
    ),
    Command("reset-namespace-bundle-quota", "--namespace/-n! --bundle/-b!", "DELETE resource-quotas/{namespace}/{bundle}"),
)
