"""Resource quotas of bundles."""

from cli.admin.table import Command

COMMANDS = (
    Command(
        "get",
        "--namespace/-n:string --bundle/-b:string",
        "GET resource-quotas/{namespace}/{bundle}",
        output="json",
        together=("namespace", "bundle"),
    ),
    Command(
        "set",
        "--namespace/-n:string --bundle/-b:string --msgRateIn/-mi:long! --msgRateOut/-mo:long! "
        "--bandwidthIn/-bi:long! --bandwidthOut/-bo:long! --memory/-mem:long! --dynamic/-d",
        "POST resource-quotas/{namespace}/{bundle}",
        body={
            "msgRateIn": 5.0,
            "msgRateOut": 5.0,
            "bandwidthIn": 5.0,
            "bandwidthOut": 5.0,
            "memory": 5.0,
            "dynamic": "{dynamic}",
        },
        together=("namespace", "bundle"),
    ),
    Command("reset-namespace-bundle-quota", "--namespace/-n! --bundle/-b!", "DELETE resource-quotas/{namespace}/{bundle}"),
)
