"""`bin/pulsar-perf produce|consume|read|transaction`: Apache's names for the options there are; others are refused."""

import importlib
import sys
from collections.abc import Callable, Sequence

from cli.admin.arguments import WrongUsage, parse
from cli.admin.table import Command, Option, options, positionals
from cli.admin.usage import synopsis
from cli.client_configuration import ConfigurationError, load_client_configuration

_OF_ALL = (
    "-u/--service-url:string --auth-plugin:string --auth-params:string --trust-cert-file:string "
    "-i/--stats-interval-seconds:long=0 -time/--test-duration:long=0 --json "
)
COMMANDS = {
    command.name: command
    for command in (
        Command(
            "produce",
            "TOPIC -r/--rate:int=100 -s/--size:int=1024 -m/--num-messages:long=0 -o/--max-outstanding:int=0 "
            "-db/--disable-batching -b/--batch-time-window:double=1 -bm/--batch-max-messages:int=1000 "
            "-bb/--batch-max-bytes:int=4194304 " + _OF_ALL,
            run="produce:produce",
        ),
        Command(
            "consume",
            "TOPIC -ss/--subscriptions:list -st/--subscription-type:choice(Exclusive|Shared|Failover|Key_Shared)=Exclusive "
            "-sp/--subscription-position:choice(Latest|Earliest)=Latest -q/--receiver-queue-size:int=1000 "
            "-m/--num-messages:long=0 " + _OF_ALL.replace("-m/", ""),
            run="consume:consume",
        ),
        Command(
            "read",
            "TOPIC -m/--start-message-id:string=earliest -q/--receiver-queue-size:int=1000 -n/--num-messages:long=0 " + _OF_ALL,
            run="consume:read",
        ),
        Command(
            "transaction",
            "--topics-c:list! --topics-p:list! -threads/--num-test-threads:int=1 -ss/--subscriptions:list "
            "-sp/--subscription-position:choice(Latest|Earliest)=Earliest "
            "-st/--subscription-type:choice(Exclusive|Shared|Failover|Key_Shared)=Shared -q/--receiver-queue-size:int=1000 "
            "-tto/--txn-timeout:long=5 -ntxn/--number-txn:long=0 -nmp/--numMessage-perTransaction-produce:int=1 "
            "-nmc/--numMessage-perTransaction-consume:int=1 --txn-disable -abort -txnRate:int=0 " + _OF_ALL,
            run="transaction:transaction",
        ),
    )
}
_CONFIGURED = {
    "service-url": "broker_service_url",
    "auth-plugin": "auth_plugin",
    "auth-params": "auth_params",
    "trust-cert-file": "tls_trust_certs",
}


def main(words: Sequence[str] | None = None, write: Callable[[str], None] = print) -> int:
    """The exit code: 0, or 1 with the reason on stderr."""
    words = sys.argv[1:] if words is None else words
    asked = any(word in ("-h", "--help") for word in words)
    if not words or words[0] not in COMMANDS or asked:
        print(_usage(), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 1
    from cli.client.connection import ClientError

    command = COMMANDS[words[0]]
    shown: list[Option] = options(command)
    try:
        values = {"subscriptions": [], **parse(positionals(command), shown, words[1:], 1)}
        over = {field: values[key] for key, field in _CONFIGURED.items() if values.get(key)}
        module, _, function = command.run.partition(":")
        getattr(importlib.import_module(f"cli.perf.{module}"), function)(
            load_client_configuration()._replace(**over), values, write
        )
        return 0
    except WrongUsage as error:
        print(f"{error}\n{_usage()}", file=sys.stderr)
    except (ClientError, ConfigurationError, OSError) as error:
        print(f"bin/pulsar-perf: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _usage() -> str:
    return "\n".join(["Usage: pulsar-perf COMMAND ...", *(f"  {each.name} {synopsis(each)}" for each in COMMANDS.values())])


if __name__ == "__main__":
    sys.exit(main())
