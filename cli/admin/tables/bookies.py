"""Bookies and racks."""

from cli.admin.table import Command

COMMANDS = (
    Command("racks-placement", request="GET bookies/racks-info", output="json"),
    Command("list-bookies", request="GET bookies/all", output="json"),
    Command("get-bookie-rack", "-b/--bookie!", "GET bookies/racks-info/{bookie}", output="json"),
    Command("delete-bookie-rack", "-b/--bookie!", "DELETE bookies/racks-info/{bookie}"),
    Command(
        "set-bookie-rack",
        "-g/--group:string=default -b/--bookie! -r/--rack! -hn/--hostname:string",
        "POST bookies/racks-info/{bookie}?group={group}",
        body={"rack": "{rack}", "hostname": "{hostname}"},
    ),
)
