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
