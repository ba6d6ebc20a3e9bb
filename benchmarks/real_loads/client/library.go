package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	workerClients = 20
	workerQueue   = 100
	fastConsumers = 10
	slowQueue     = 10
	slowPause     = 100 * time.Millisecond
	mixedPending  = 100
)

// consuming receives and acknowledges until it is cancelled.
func consuming(from pulsar.Consumer, until context.Context, each func(pulsar.Message)) {
	for {
		got, err := from.Receive(until)
		if err != nil {
			return
		}
		each(got)
		_ = from.AckID(got.ID())
	}
}

// flatOut sends from a client of its own until the time is over; `bytes` gives the size of each message in turn.
func flatOut(m *meter, pending int, until time.Time, bytes func(int) int) {
	client := newClient()
	defer client.Close()
	mine, i := newProducer(client, *topic, pending), 0
	ticks(until, func() {
		at := time.Now()
		told := &pulsar.ProducerMessage{Payload: stamped(bytes(i))}
		mine.SendAsync(context.Background(), told, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { m.receipt(at, err) })
		i++
	})
	_ = mine.Flush()
}

func always(int) int { return *size }

// measured runs the senders and whatever consumes, warm first, and ends the consumers.
func measured(m *meter, each func(*meter) int64, consumers []func(context.Context), senders ...func(until time.Time)) row {
	until, cancel := context.WithCancel(context.Background())
	var receiving, sending sync.WaitGroup
	for _, consume := range consumers {
		receiving.Add(1)
		go func() { defer receiving.Done(); consume(until) }()
	}
	end := time.Now().Add(*warmup + *duration)
	for _, sender := range senders {
		sending.Add(1)
		go func() { defer sending.Done(); sender(end) }()
	}
	time.Sleep(*warmup)
	m.begin()
	time.Sleep(time.Until(end))
	told := m.end(each)
	sending.Wait()
	cancel()
	receiving.Wait()
	return told
}

func deliveringTo(m *meter, consumers ...pulsar.Consumer) (all []func(context.Context)) {
	for _, each := range consumers {
		all = append(all, func(until context.Context) {
			consuming(each, until, func(got pulsar.Message) { m.delivery(got.Payload()) })
		})
	}
	return all
}

func sizedSender(m *meter, pending int, bytes func(int) int) func(time.Time) {
	return func(until time.Time) { flatOut(m, pending, until, bytes) }
}

func produce() row {
	var m meter
	return measured(&m, ofPublished, nil, sizedSender(&m, 1000, always))
}

func workers() row {
	var m meter
	var consumers []pulsar.Consumer
	clients := make([]pulsar.Client, workerClients)
	for at := range clients {
		clients[at] = newClient()
	}
	began, before := time.Now(), useOf(*pids).cpu
	for i := range *number {
		consumers = append(consumers, newConsumer(clients[i%workerClients], *topic, "workers", pulsar.Shared, workerQueue))
	}
	made := row{"seconds": rounded(time.Since(began).Seconds()), "server_cpu_s": rounded(useOf(*pids).cpu - before)}
	told := measured(&m, ofPublished, deliveringTo(&m, consumers...), sizedSender(&m, 1000, always))
	told["subscribing"] = made
	return told
}

// mixed has forty messages in a round, the large ones far apart; latencies are of those of at most 1 KB.
func mixed() row {
	var m meter
	consumer := newConsumer(newClient(), *topic, "mixed", pulsar.Exclusive, 100)
	small := func(until context.Context) {
		consuming(consumer, until, func(got pulsar.Message) {
			if len(got.Payload()) <= 1000 {
				m.delivery(got.Payload())
			}
		})
	}
	bytes := func(i int) int {
		switch i % 40 {
		case 0:
			return 5_000_000
		case 13, 27:
			return 1_000_000
		case 5, 15, 25, 35:
			return 100_000
		}
		return []int{10, 100, 1000, 10_000, 10}[i%5]
	}
	return measured(&m, ofPublished, []func(context.Context){small}, sizedSender(&m, mixedPending, bytes))
}

func slow() row {
	var m meter
	var fast []pulsar.Consumer
	for range fastConsumers {
		fast = append(fast, newConsumer(newClient(), *topic, "beside", pulsar.Shared, 1000))
	}
	lazy := newConsumer(newClient(), *topic, "beside", pulsar.Shared, slowQueue)
	all := append(deliveringTo(&m, fast...), func(until context.Context) {
		consuming(lazy, until, func(pulsar.Message) { time.Sleep(slowPause) })
	})
	return measured(&m, ofPublished, all, sizedSender(&m, 1000, always))
}

// catchup fills a topic in batches, then reads that backlog while more is published and consumed at once.
func catchup() row {
	var m meter
	*batch = true
	client := newClient()
	tail := newConsumer(client, *topic, "tail", pulsar.Exclusive, 1000)
	late := newConsumer(newClient(), *topic, "late", pulsar.Exclusive, 1000)
	late.Close()
	filler := newProducer(client, *topic, 1000)
	for range *messages {
		filler.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: stamped(*size)},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { fail("fill", err) })
	}
	fail("fill", filler.Flush())
	fail("seek", tail.SeekByTime(time.Now()))
	behind := newConsumer(newClient(), *topic, "late", pulsar.Exclusive, 1000)
	read, waited := 0, time.Duration(0)
	reading := func(until context.Context) {
		for began := time.Now(); read < *messages; read++ {
			if _, err := behind.Receive(until); err != nil {
				return
			}
			waited = time.Since(began)
		}
	}
	told := measured(&m, ofPublished, append(deliveringTo(&m, tail), reading), sizedSender(&m, 1000, always))
	told["caught_up"], told["caught_up_s"] = read, rounded(float64(read)/waited.Seconds())
	return told
}

func quiet() row {
	var m meter
	client := newClient()
	mine := newProducer(client, *topic, 10)
	consumer := newConsumer(newClient(), *topic, "quiet", pulsar.Exclusive, 100)
	return measured(&m, ofPublished, deliveringTo(&m, consumer), func(until time.Time) {
		ticks(until, func() {
			at := time.Now()
			_, err := mine.Send(context.Background(), &pulsar.ProducerMessage{Payload: stamped(*size)})
			m.receipt(at, err)
		})
	})
}

const (
	transactionClients = 4
	transactionsAtOnce = 16
)

// transactions does some at a time: each publishes a message and commits; then each acknowledges one and commits.
func transactions() row {
	clients := make([]pulsar.Client, transactionClients)
	for at := range clients {
		clients[at] = newClient()
	}
	var publishing, acknowledging []func(time.Time)
	var published, acknowledged meter
	for i := range transactionsAtOnce {
		client := clients[i%transactionClients]
		mine := newProducer(client, *topic, 100)
		publishing = append(publishing, each(client, &published, func(in pulsar.Transaction) error {
			_, err := mine.Send(context.Background(), &pulsar.ProducerMessage{Payload: stamped(*size), Transaction: in})
			return err
		}))
	}
	told := measured(&published, ofPublished, nil, publishing...)
	for i := range transactionsAtOnce {
		client := clients[i%transactionClients]
		consumer := newConsumer(client, *topic, "transactions", pulsar.Shared, 100)
		acknowledging = append(acknowledging, each(client, &acknowledged, func(in pulsar.Transaction) error {
			bounded, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			got, err := consumer.Receive(bounded)
			if err != nil {
				return fmt.Errorf("no message: %w", err)
			}
			return consumer.AckWithTxn(got, in)
		}))
	}
	*duration /= 2 // there must be enough of what was published
	told["acknowledged"] = measured(&acknowledged, ofPublished, nil, acknowledging...)
	return told
}

func each(client pulsar.Client, m *meter, act func(pulsar.Transaction) error) func(time.Time) {
	return func(until time.Time) {
		for time.Now().Before(until) {
			at := time.Now()
			opened, err := client.NewTransaction(time.Minute)
			if err == nil {
				err = act(opened)
			}
			if err == nil {
				err = opened.Commit(context.Background())
			}
			m.receipt(at, err)
		}
	}
}
