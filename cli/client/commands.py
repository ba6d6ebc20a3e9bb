"""The commands of pulsar-client and their options, with Apache's names; what this client cannot do is refused."""

from collections.abc import Mapping
from typing import Any

from cli.admin.arguments import WrongUsage
from cli.admin.table import Command, Option, options

OWN = tuple(
    options(
        Command(
            "pulsar-client",
            "--url:string --proxy-url:string --proxy-protocol:choice(SNI) --auth-plugin:string --listener-name:string "
            "--auth-params:string --tlsTrustCertsFilePath:string -ml/--memory-limit:bytes=0",
        )
    )
)
_READING = (
    "-n/--num-messages:int=1 --hex --hide-content -r/--rate:double=0 -q/--queue-size:int=0 -mc/--max_chunked_msg:int=0 "
    "-ac/--auto_ack_chunk_q_full -ekv/--encryption-key-value:string -st/--schema-type:string=bytes -pm/--pool-messages "
    "-ca/--crypto-failure-action:choice(FAIL|DISCARD|CONSUME)=FAIL -mp/--print-metadata"
)
COMMANDS = {
    command.name: command
    for command in (
        Command(
            "produce",
            "TOPIC -m/--messages:texts -f/--files:texts -n/--num-produce:int=1 -r/--rate:double=0 -db/--disable-batching "
            "-c/--chunking -s/--separator:string=, -p/--properties:texts -k/--key:string -kvk/--key-value-key:string "
            "-kvkf/--key-value-key-file:string -vs/--value-schema:string=bytes -ks/--key-schema:string=string "
            "-kvet/--key-value-encoding-type:string -ekn/--encryption-key-name:string -ekv/--encryption-key-value:string "
            "-dr/--disable-replication",
            run="produce:produce",
        ),
        Command(
            "consume",
            "TOPIC -t/--subscription-type:choice(Exclusive|Shared|Failover|Key_Shared)=Exclusive "
            "-m/--subscription-mode:choice(Durable|NonDurable)=Durable "
            "-p/--subscription-position:choice(Latest|Earliest)=Latest -s/--subscription-name! --regex -rs/--replicated "
            "-stp/--start-timestamp:long=0 -etp/--end-timestamp:long=9223372036854775807 " + _READING,
            run="consume:consume",
        ),
        Command(
            "read",
            "TOPIC -m/--start-message-id:string=latest -i/--start-message-id-inclusive " + _READING,
            run="consume:read",
        ),
    )
}
_REFUSED: Mapping[str, str] = {
    "chunking": "messages are sent whole",
    "regex": "give one topic",
    "print-metadata": "--json tells what this client knows of a message",
    "auto_ack_chunk_q_full": "messages in chunks are not put together",
    "max_chunked_msg": "messages in chunks are not put together",
    "encryption-key-name": "this client encrypts nothing",
    "encryption-key-value": "this client has no keys",
    "key-value-key": "key-value schemas are not offered",
    "key-value-key-file": "key-value schemas are not offered",
    "key-value-encoding-type": "key-value schemas are not offered",
    "proxy-url": "no SNI proxies; set --url to a Pulsar proxy",
    "listener-name": "the broker's own address is used",
}
_SCHEMAS = ("bytes", "string", "auto_consume")


def refuse_what_is_not_offered(values: Mapping[str, Any], shown: tuple[Option, ...]) -> None:
    """WrongUsage names the option and what to do."""
    for option in shown:
        if option.key in _REFUSED and values.get(option.key):
            raise WrongUsage(f"{max(option.names, key=len)}: not offered here: {_REFUSED[option.key]}")
    if values.get("crypto-failure-action", "FAIL") != "FAIL":
        raise WrongUsage("--crypto-failure-action: not offered here: this client has no keys, and says where it needs one")
    for key in ("value-schema", "schema-type"):
        if values.get(key, "bytes") not in _SCHEMAS:
            raise WrongUsage(f"--{key} {values[key]}: not offered here; expected one of {', '.join(_SCHEMAS)}")
