// Command client puts loads on a Pulsar broker that the other load tools do not have; one JSON row a run on stdout.
//
//	client handshakes    -n 2000                 TLS connections that all begin at once, each up to CONNECTED
//	client returning     -n 10000 -topics 1000   producers, a connection each, that come back after a restart of the broker
//	client subscriptions -n 10000 -messages 20   that many subscriptions on one topic; every message goes to all of them
//	client workers       -n 1000                 consumers on one Shared subscription, unbatched messages flat out
//	client mixed                                 10 B to 5 MB on one connection, published and consumed
//	client slow          -rate 5000              ten fast consumers and a slow one on a Shared subscription
//	client catchup       -messages 300000        a reader of a backlog beside a producer and its consumer
//	client quiet         -rate 100               one message at a time, end to end
//	client produce       [-batch]                1 KB flat out, over TLS with -ca
//	client transactions                          one message published and committed, then one acknowledged and committed
//	client topics        -n 100000 -messages 1   a producer on each of many topics
//	client spread        -topics 1000 -window 1000   messages one by one over many topics, a producer on each, one connection
//	client failover      -n 10000                producers on as many topics, when one of two brokers dies
//	client lookups       -n 100000               one lookup after the other, of topics that `topics` made
//
// `handshakes`, `returning`, `subscriptions`, `topics`, `spread` and `lookups` speak the protocol themselves, where a library's own cost would hide the broker's.
// With -pid the CPU seconds and the resident memory of those processes are read from /proc around the measured time.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
)

var (
	flags    = flag.NewFlagSet("client", flag.ExitOnError)
	url      = flags.String("url", "pulsar://127.0.0.1:6650", "the broker's address")
	pids     = flags.String("pid", "", "processes of the broker, comma separated")
	ca       = flags.String("ca", "", "certificates that are trusted; the address is one for TLS then")
	topic    = flags.String("topic", "", "topic, or what the names of topics begin with (default: a fresh name)")
	topics   = flags.Int("topics", 1000, "topics of all producers")
	number   = flags.Int("n", 1000, "how many of what the load is about")
	messages = flags.Int("messages", 20, "messages")
	size     = flags.Int("size", 1024, "bytes of a message")
	batch    = flags.Bool("batch", false, "send batches")
	rate     = flags.Float64("rate", 0, "messages a second, 0: as many as go")
	duration = flags.Duration("duration", 8*time.Second, "measured time")
	warmup   = flags.Duration("warmup", 2*time.Second, "unmeasured time before")
	window   = flags.Int("window", 1000, "messages that wait for their receipts, at most")
	hold     = flags.Bool("hold", false, "keep the producers until the input ends")
	bound    = flags.Duration("timeout", 240*time.Second, "the run fails after that")
)

type row map[string]any

var loads = map[string]func() row{
	"handshakes": handshakes, "returning": returning, "subscriptions": subscriptions, "workers": workers, "mixed": mixed,
	"slow": slow, "catchup": catchup, "quiet": quiet, "produce": produce, "transactions": transactions,
	"topics": manyTopics, "lookups": lookups, "spread": spread, "failover": failover,
}

func main() {
	if len(os.Args) < 2 || loads[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: client LOAD [flags]; see the head of main.go")
		os.Exit(2)
	}
	_ = flags.Parse(os.Args[2:])
	if *topic == "" {
		*topic = fmt.Sprintf("persistent://public/default/real-%d", time.Now().UnixNano())
	}
	time.AfterFunc(*bound, func() { fail("run", fmt.Errorf("not done in %s", *bound)) })
	tell(loads[os.Args[1]]())
}

func tell(told row) {
	text, _ := json.Marshal(told)
	fmt.Println(string(text))
}

// fail ends the run with a row that says why.
func fail(what string, err error) {
	if err != nil {
		tell(row{"error": what + ": " + err.Error()})
		os.Exit(1)
	}
}

func newClient() pulsar.Client {
	made, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: *url, TLSTrustCertsFilePath: *ca, Logger: plog.DefaultNopLogger(), OperationTimeout: time.Minute,
		MemoryLimitBytes: 512 << 20, EnableTransaction: os.Args[1] == "transactions",
	})
	fail("client", err)
	return made
}

func newProducer(of pulsar.Client, on string, pending int) pulsar.Producer {
	made, err := of.CreateProducer(pulsar.ProducerOptions{
		Topic: on, DisableBatching: !*batch, BatchingMaxPublishDelay: time.Millisecond, MaxPendingMessages: pending,
		SendTimeout: time.Minute,
	})
	fail("producer on "+on, err)
	return made
}

func newConsumer(of pulsar.Client, on, name string, kind pulsar.SubscriptionType, queue int) pulsar.Consumer {
	made, err := of.Subscribe(pulsar.ConsumerOptions{
		Topic: on, SubscriptionName: name, Type: kind, ReceiverQueueSize: queue,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	fail("subscription "+name, err)
	return made
}
