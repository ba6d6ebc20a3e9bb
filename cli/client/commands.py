"""The commands of pulsar-client and their options, with Apache's names; what this client cannot do is refused by name."""

from collections.abc import Mapping

from cli.admin.table import Command, Option, options
from cli.command_line.option_texts import OptionTexts

OWN = tuple(
    options(
        Command(
            "pulsar-client",
            "--url:string --proxy-url:string --proxy-protocol:choice(SNI) --auth-plugin:string --listener-name:string "
            "--auth-params:string --tlsTrustCertsFilePath:string -ml/--memory-limit:bytes=0",
        )
    )
)
JSON = Option("json", ("--json",), "flag", False, None)
_READING = (
    "-n/--num-messages:int=1 --hex --hide-content -r/--rate:double=0 -q/--queue-size:int=0 -mc/--max_chunked_msg:int=0 "
    "-ac/--auto_ack_chunk_q_full -ekv/--encryption-key-value:string -st/--schema-type:choice(bytes|auto_consume)=bytes "
    "-pm/--pool-messages -ca/--crypto-failure-action:choice(FAIL|DISCARD|CONSUME)=FAIL -mp/--print-metadata"
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
ABOUT: Mapping[str, str] = {
    "produce": "Sends messages to a topic and prints how many were acknowledged.",
    "consume": "Subscribes to a topic, prints its messages and acknowledges them.",
    "read": "Prints the messages of a topic from a position on, without a subscription that stays.",
}
_READ_TEXTS = {
    "num-messages": "How many messages to print; 0: for ever, until Ctrl-C.",
    "hex": "Print payloads as hexadecimal dumps.",
    "hide-content": "Print no messages, and one line for every 1,000.",
    "rate": "Messages per second at most; 0: as fast as they come.",
    "queue-size": "How many messages the broker may send ahead; 0: 1,000.",
    "schema-type": "bytes: payloads as they are; auto_consume: read by the topic's schema.",
    "print-metadata": "Print message id, producer, sequence id, redelivery count and more behind each message.",
    "json": "Print one line of JSON for each message: message id, topic, redelivery count, key, payload and more.",
}
TEXTS = OptionTexts(
    about={
        "url": "Addresses of brokers or proxies: pulsar://host:port[,host:port...], tried in their order.",
        "auth-plugin": "How to prove who it is: token, basic, tls, or the name of Apache's class.",
        "auth-params": "For it: token:TEXT, file:///PATH or env:NAME; userId:X,password:Y; tlsCertFile:PATH,tlsKeyFile:PATH.",
        "listener-name": "Which of the brokers' advertisedListeners to use.",
        "tlsTrustCertsFilePath": "The authorities to trust, a file in PEM form.",
        "produce.messages": "A message, or several with the separator between them; may be repeated.",
        "produce.files": "A file whose content is a message, or several with commas between them; may be repeated.",
        "produce.num-produce": "How many times to send all messages.",
        "produce.rate": "Messages per second at most; 0: as fast as possible.",
        "produce.separator": "Separator of messages in one -m; an empty text: -m is one message.",
        "produce.properties": "Properties of every message: k1=v1,k2=v2; may be repeated.",
        "produce.key": "The key of every message.",
        "produce.value-schema": "bytes, string, avro:DEFINITION or json:DEFINITION; the messages of the last two are JSON.",
        "produce.disable-replication": "Replicate the messages to no other cluster.",
        "consume.subscription-type": "How consumers of the subscription share its messages.",
        "consume.subscription-mode": "Durable: the subscription stays; NonDurable: it goes with this consumer.",
        "consume.subscription-position": "Where a subscription that is not there yet begins.",
        "consume.subscription-name": "The name of the subscription.",
        "consume.regex": "TOPIC is persistent://TENANT/NAMESPACE/PATTERN: all topics that fit, new ones too.",
        "consume.replicated": "Replicate the subscription's place to the other clusters.",
        "consume.start-timestamp": "Begin with messages published at this time, in milliseconds since 1970; 0: where it is.",
        "consume.end-timestamp": "End before a message published after this time, in milliseconds since 1970.",
        "read.start-message-id": "Where to begin: latest, earliest, or LEDGER:ENTRY.",
        "read.start-message-id-inclusive": "Print the message of --start-message-id too.",
        **{f"{name}.{key}": text for name in ("consume", "read") for key, text in _READ_TEXTS.items()},
    },
    without_effect={
        "memory-limit": "this client keeps no more than the messages in flight",
        "produce.disable-batching": "messages are sent one by one",
        "produce.key-schema": "it counts with --key-value-encoding-type, which is not offered",
        "pool-messages": "it concerns Java's memory",
    },
    refused={
        "chunking": "messages are sent whole; split the content, or raise the broker's maxMessageSize",
        "auto_ack_chunk_q_full": "messages in chunks are not put together",
        "max_chunked_msg": "messages in chunks are not put together",
        "encryption-key-name": "this client encrypts nothing; use Apache's client for it",
        "encryption-key-value": "this client has no keys; use Apache's client for it",
        "crypto-failure-action": "this client has no keys, and ends at an encrypted message",
        "key-value-key": "key-value schemas are not offered",
        "key-value-key-file": "key-value schemas are not offered",
        "key-value-encoding-type": "key-value schemas are not offered",
        "proxy-url": "no SNI proxies; set --url to a Pulsar proxy",
        "proxy-protocol": "no SNI proxies; set --url to a Pulsar proxy",
    },
)
