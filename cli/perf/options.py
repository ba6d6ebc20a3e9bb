"""The commands of pulsar-perf and their options, with Apache's names; what is not offered is refused by name."""

from collections.abc import Mapping

from cli.admin.table import Command, Option
from cli.command_line.option_texts import OptionTexts

JSON = Option("json", ("--json",), "flag", False, None)
_CLIENT = (
    "-u/--service-url:string --auth-plugin:string --auth_plugin:string --auth-params:string --ssl-factory-plugin:string "
    "--ssl-factory-plugin-params:string --trust-cert-file:string= --tls-allow-insecure:bool "
    "--tls-enable-hostname-verification:bool -c/--max-connections:int=1 -i/--stats-interval-seconds:long=0 "
    "-ioThreads/--num-io-threads:int=1 -bw/--busy-wait --listener-name:string -lt/--num-listener-threads:int=1 "
    "-mlr/--max-lookup-request:int=50000 --proxy-url:string --proxy-protocol:choice(SNI) -ml/--memory-limit:bytes=0 "
    "-time/--test-duration:long=0 "
)
_TOPICS = "TOPIC... -t/--num-topics/--num-topic:int=1 "
_TYPES = "choice(Exclusive|Shared|Failover|Key_Shared)"
_POSITIONS = "choice(Latest|Earliest)"
_TRANSACTIONS = "-nmt/--numMessage-perTransaction:int=50 -txn/--txn-enable -abort --histogram-file:string "
COMMANDS = {
    command.name: command
    for command in (
        Command(
            "produce",
            _TOPICS + "-threads/--num-test-threads:int=1 -r/--rate:int=100 -s/--size:int=1024 -n/--num-producers:int=1 "
            "--separator:string=- --send-timeout:int=0 -pn/--producer-name:string -au/--admin-url:string -ch/--chunking "
            "-o/--max-outstanding:int=0 -p/--max-outstanding-across-partitions:int=0 -np/--partitions:int "
            "-m/--num-messages:long=0 -z/--compression:choice(NONE|LZ4|ZLIB|ZSTD|SNAPPY)=NONE -f/--payload-file:string "
            "-e/--payload-delimiter:string=\\n -b/--batch-time-window:double=1.0 -db/--disable-batching "
            "-bm/--batch-max-messages:int=1000 -bb/--batch-max-bytes:int=4194304 --warmup-time:double=1.0 "
            "-k/--encryption-key-name:string -v/--encryption-key-value-file:string -d/--delay:long=0 "
            "-dr/--delay-range:string -set/--set-event-time -ef/--exit-on-failure "
            "-mk/--message-key-generation-mode:choice(autoIncrement|random) "
            "-am/--access-mode:choice(Shared|Exclusive|ExclusiveWithFencing|WaitForExclusive)=Shared -fp/--format-payload "
            "-fc/--format-class:string=org.apache.pulsar.testclient.DefaultMessageFormatter -tto/--txn-timeout:long=10 "
            + _TRANSACTIONS
            + _CLIENT,
            run="produce:produce",
        ),
        Command(
            "consume",
            _TOPICS + "-n/--num-consumers:int=1 -ns/--num-subscriptions:int=1 -s/--subscriber-name:string "
            f"-ss/--subscriptions:list=sub -st/--subscription-type:{_TYPES}=Exclusive "
            f"-sp/--subscription-position:{_POSITIONS}=Latest -r/--rate:double=0.0 -q/--receiver-queue-size:int=1000 "
            "-p/--receiver-queue-size-across-partitions:int=50000 -aq/--auto-scaled-receiver-queue-size -rs/--replicated "
            "--acks-delay-millis:int=100 -m/--num-messages:long=0 -mc/--max_chunked_msg:int=0 -ac/--auto_ack_chunk_q_full "
            "-e/--expire_time_incomplete_chunked_messages:long=0 -v/--encryption-key-value-file:string --batch-index-ack "
            "-pm/--pool-messages -tto/--txn-timeout:long=10 -ntxn:long=0 " + _TRANSACTIONS + _CLIENT,
            run="consume:consume",
        ),
        Command(
            "read",
            _TOPICS + "-r/--rate:double=0.0 -m/--start-message-id:string=earliest -q/--receiver-queue-size:int=1000 "
            "-n/--num-messages:long=0 --use-tls " + _CLIENT,
            run="consume:read",
        ),
        Command(
            "transaction",
            "--topics-c:list! --topics-p:list! -threads/--num-test-threads:int=1 -au/--admin-url:string -np/--partitions:int "
            f"-ss/--subscriptions:list=sub -ns/--num-subscriptions:int=1 -sp/--subscription-position:{_POSITIONS}=Earliest "
            f"-st/--subscription-type:{_TYPES}=Shared -rs/--replicated -q/--receiver-queue-size:int=1000 "
            "-tto/--txn-timeout:long=5 -ntxn/--number-txn:long=0 -nmp/--numMessage-perTransaction-produce:int=1 "
            "-nmc/--numMessage-perTransaction-consume:int=1 --txn-disable -abort -txnRate:int=0 " + _CLIENT,
            run="transaction:transaction",
        ),
    )
}
ABOUT: Mapping[str, str] = {
    "produce": "Sends messages at a rate, and measures the time from a send to its receipt.",
    "consume": "Receives and acknowledges messages, and measures the time from their publishing.",
    "read": "Reads messages without a subscription that stays, and measures the time from their publishing.",
    "transaction": "Receives, publishes and commits in transactions, one after the other in each thread, and measures them.",
}
_ELSEWHERE = "pulsar-perf transaction measures transactions"
_PARTITIONS = "pulsar-admin topics create-partitioned-topic makes partitioned topics"
_CHUNKS = "messages in chunks are not put together"
_TAKING = {
    "subscriptions": "The names of the subscriptions of each topic, with commas between them.",
    "subscription-type": "How consumers of a subscription share its messages.",
    "subscription-position": "Where a subscription that is not there yet begins.",
    "replicated": "Replicate the subscriptions' places to the other clusters.",
    "num-subscriptions": "How many subscriptions each topic has; with one name in -ss they are NAME-0, NAME-1 and so on.",
}
TEXTS = OptionTexts(
    about={
        "service-url": "Addresses of brokers or proxies: pulsar://host:port[,host:port...], tried in their order.",
        "auth-plugin": "How to prove who it is: token, basic, tls, or the name of Apache's class.",
        "auth_plugin": "The old name of --auth-plugin.",
        "auth-params": "For it: token:TEXT, file:///PATH or env:NAME; userId:X,password:Y; tlsCertFile:PATH,tlsKeyFile:PATH.",
        "trust-cert-file": "The authorities to trust, a file in PEM form.",
        "tls-allow-insecure": "Trust every certificate.",
        "tls-enable-hostname-verification": "Refuse a certificate that is not for the server's name.",
        "stats-interval-seconds": "Seconds between two lines of figures; 0: 10.",
        "listener-name": "Which of the brokers' advertisedListeners to use.",
        "test-duration": "End after so many seconds; 0: for ever, until Ctrl-C.",
        "num-topics": "How many topics: as many as are named, or of one name NAME-0, NAME-1 and so on.",
        "receiver-queue-size": "How many messages the broker may send ahead to each consumer.",
        "num-messages": "End after so many messages in all; 0: for ever, until Ctrl-C.",
        "json": "Print the figures at the end as one line of JSON; the lines before go to stderr.",
        "produce.rate": "Messages per second over all topics; 0: as fast as possible.",
        "produce.size": "Bytes of each message.",
        "produce.num-producers": "Producers of each topic.",
        "produce.separator": "Separator of a topic's name and its number.",
        "produce.send-timeout": "A message without a receipt after so many seconds has failed; 0: it is waited for.",
        "produce.producer-name": "The producers' name; of several NAME-0, NAME-1 and so on.",
        "produce.max-outstanding": "Batches without a receipt that each producer may have; 0: 1,000.",
        "produce.max-outstanding-across-partitions": "The same for all partitions of a topic together; 0: no bound.",
        "produce.compression": "How batches, or single messages, are compressed.",
        "produce.payload-file": "Take each payload by chance from the lines of this file.",
        "produce.payload-delimiter": "Separator of two payloads in that file.",
        "produce.batch-time-window": "Send the messages of so many milliseconds as one batch.",
        "produce.disable-batching": "Send each message by itself.",
        "produce.batch-max-messages": "Messages in a batch at most.",
        "produce.batch-max-bytes": "Bytes in a batch at most.",
        "produce.warmup-time": "Leave messages of the first so many seconds out of the latencies.",
        "produce.delay": "Deliver each message so many seconds later; such messages are sent by themselves.",
        "produce.delay-range": "FROM,BEFORE: the same by chance, from FROM to under BEFORE seconds.",
        "produce.set-event-time": "Set the messages' event time to now.",
        "produce.exit-on-failure": "End at the first message that the broker refuses, or that has no receipt in time.",
        "produce.message-key-generation-mode": "Keys: numbers that count up, or by chance.",
        "produce.access-mode": "Whether other producers may be on the topic.",
        "consume.num-consumers": "Consumers of each subscription.",
        "consume.subscriber-name": "The beginning of the subscriptions' names, in place of -ss.",
        "consume.rate": "Take so many messages per second at most; 0: as fast as they come.",
        "consume.receiver-queue-size-across-partitions": "The same for all partitions of a topic together.",
        "consume.acks-delay-millis": "Send acknowledgements together that come within so many milliseconds; 0: each at once.",
        "read.rate": "Take so many messages per second at most; 0: as fast as they come.",
        "read.start-message-id": "Where to begin: earliest, latest, or LEDGER:ENTRY.",
        "transaction.topics-c": "Topics of which each transaction receives and acknowledges.",
        "transaction.topics-p": "Topics to which each transaction publishes.",
        "transaction.num-test-threads": "Threads, each with a transaction at a time.",
        "transaction.txn-timeout": "Seconds after which the coordinator aborts a transaction.",
        "transaction.number-txn": "End after so many transactions; 0: for ever, until Ctrl-C.",
        "transaction.numMessage-perTransaction-produce": "Messages to each topic of --topics-p in a transaction.",
        "transaction.numMessage-perTransaction-consume": "Messages of each subscription in a transaction.",
        "transaction.txn-disable": "Do the same without transactions.",
        "transaction.abort": "Abort every transaction in place of committing it.",
        "transaction.txnRate": "Transactions per second at most; 0: as fast as possible.",
        **{f"{name}.{key}": text for name in ("consume", "transaction") for key, text in _TAKING.items()},
    },
    without_effect={
        "max-connections": "each producer and consumer has a connection of its own",
        "num-io-threads": "one thread serves all connections",
        "num-listener-threads": "one thread serves all connections",
        "busy-wait": "it waits for the operating system",
        "max-lookup-request": "lookups are made one after the other",
        "memory-limit": "--max-outstanding and --receiver-queue-size are the bounds",
        "consume.pool-messages": "it concerns Java's memory",
        "consume.auto-scaled-receiver-queue-size": "the queue has the size of --receiver-queue-size",
        "consume.batch-index-ack": "batches are acknowledged whole",
        "produce.txn-timeout": "it counts with --txn-enable, which is not offered",
        "consume.txn-timeout": "it counts with --txn-enable, which is not offered",
        "produce.numMessage-perTransaction": "it counts with --txn-enable, which is not offered",
        "consume.numMessage-perTransaction": "it counts with --txn-enable, which is not offered",
        "consume.ntxn": "it counts with --txn-enable, which is not offered",
        "produce.format-class": "it counts with --format-payload, which is not offered",
    },
    refused={
        "ssl-factory-plugin": "it names a class of Java; --trust-cert-file takes a file in PEM form",
        "ssl-factory-plugin-params": "it is for a class of Java; --trust-cert-file takes a file in PEM form",
        "proxy-url": "no SNI proxies; set --service-url to a Pulsar proxy",
        "proxy-protocol": "no SNI proxies; set --service-url to a Pulsar proxy",
        "partitions": _PARTITIONS,
        "admin-url": _PARTITIONS,
        "histogram-file": "there is no HdrHistogram; --json has the percentiles",
        "txn-enable": _ELSEWHERE,
        "produce.abort": _ELSEWHERE,
        "consume.abort": _ELSEWHERE,
        "produce.num-test-threads": "one thread serves all producers; start several processes for more load",
        "produce.chunking": "messages are sent whole",
        "produce.encryption-key-name": "this client encrypts nothing",
        "produce.encryption-key-value-file": "this client encrypts nothing",
        "produce.format-payload": "payloads are prepared before they are sent",
        "consume.max_chunked_msg": _CHUNKS,
        "consume.auto_ack_chunk_q_full": _CHUNKS,
        "consume.expire_time_incomplete_chunked_messages": _CHUNKS,
        "consume.encryption-key-value-file": "this client has no keys",
        "read.use-tls": "an address with pulsar+ssl:// in --service-url does it",
    },
)
ABSENT: Mapping[str, str] = {
    "websocket-producer": "pulsar-perf has no WebSocket client here",
    "managed-ledger": "benchmarks/ of the checkout measures ledgers",
    "monitor-brokers": "pulsar-admin broker-stats load-report and interpulse doctor describe brokers",
    "simulation-client": "it is a part of Apache's load simulation",
    "simulation-controller": "it is a part of Apache's load simulation",
    "gen-doc": "COMMAND --help and docs/command-lines.md describe the options",
}
"""Apache's other commands, and why they are not here."""
