"""Resource groups."""

from cli.admin.table import Command

COMMANDS = (
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
