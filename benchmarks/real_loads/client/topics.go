package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const topicsUnderWay = 100

// manyTopics makes a producer on each topic over one connection, and has each send some messages, one after the other.
func manyTopics() row {
	var m meter
	before := useOf(*pids)
	mine := must(dialled(1 << 20))
	m.begin()
	began := make([]time.Time, *number)
	asked := 0
	for answered := range *number {
		for ; asked < *number && asked < answered+topicsUnderWay; asked++ {
			id := uint64(asked)
			began[asked] = time.Now()
			of := body{}.text(1, fmt.Sprintf("%s-%d", *topic, asked)).number(2, id).number(3, id+1)
			fail("producer", mine.write(frameOf(producer, of, nil)))
		}
		got, err := mine.expect(producerSuccess)
		fail("producer", err)
		request, _ := field(got, 1)
		m.receipt(began[request-1], nil)
	}
	told := m.end(ofPublished)
	told["rss_before_MB"] = rounded(before.resident)
	for sequence := range uint64(*messages) {
		publishToAll(mine, sequence)
	}
	told["with_messages"] = row{"seconds": rounded(time.Since(m.began).Seconds()), "rss_MB": rounded(useOf(*pids).resident)}
	if *hold {
		tell(told)
		go func() { _, _ = mine.next() }() // answers PING
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return told
}

func publishToAll(mine *line, sequence uint64) {
	sent := 0
	for answered := range *number {
		for ; sent < *number && sent < answered+topicsUnderWay; sent++ {
			fail("send", mine.write(sendFrame(uint64(sent), sequence, make([]byte, *size))))
		}
		_, err := mine.expect(receipt)
		fail("send", err)
	}
}

// lookups asks for one topic after the other.
func lookups() row {
	var m meter
	mine := must(dialled(1 << 16))
	until := time.Now().Add(*duration)
	m.begin()
	for i := 0; time.Now().Before(until); i++ {
		at := time.Now()
		name := fmt.Sprintf("%s-%d", *topic, i*7919%*number)
		_, err := mine.ask(lookup, body{}.text(1, name).number(2, 1).number(3, 0), lookupAnswer)
		fail("lookup", err)
		m.receipt(at, nil)
	}
	return m.end(ofPublished)
}

// spread publishes one message after the other, each on the next topic, paced or as many as the window lets go.
func spread() row {
	var m meter
	mine := must(dialled(1 << 20))
	for id := range uint64(*topics) {
		of := body{}.text(1, fmt.Sprintf("%s-%d", *topic, id)).number(2, id).number(3, id+1)
		_, err := mine.ask(producer, of, producerSuccess)
		fail("producer", err)
	}
	times := make(chan time.Time, *window)
	var receiving sync.WaitGroup
	receiving.Add(1)
	go func() {
		defer receiving.Done()
		for at := range times {
			_, err := mine.expect(receipt)
			fail("receipt", err)
			m.receipt(at, nil)
		}
	}()
	return measured(&m, ofPublished, nil, func(until time.Time) {
		sent := uint64(0)
		ticks(until, func() {
			times <- time.Now()
			fail("send", mine.write(sendFrame(sent%uint64(*topics), sent/uint64(*topics), make([]byte, *size))))
			sent++
		})
		close(times)
		receiving.Wait()
	})
}

const failoverClients = 20

// failover has a producer on each topic; when whoever started this has killed a broker and says so, each sends a message.
func failover() row {
	var m meter
	var all sync.WaitGroup
	clients, producers := make([]pulsar.Client, failoverClients), make([]pulsar.Producer, *number)
	for at := range clients {
		clients[at] = newClient()
		all.Add(1)
		go func() {
			defer all.Done()
			for i := at; i < *number; i += failoverClients {
				producers[i] = newProducer(clients[at], fmt.Sprintf("%s-%d", *topic, i), 10)
				_, err := producers[i].Send(context.Background(), &pulsar.ProducerMessage{Payload: stamped(*size)})
				fail("first message", err)
			}
		}()
	}
	all.Wait()
	tell(row{"opened": *number})
	_ = must(bufio.NewReader(os.Stdin).ReadString('\n')) // the broker is dead now
	m.begin()
	for _, each := range producers {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := each.Send(context.Background(), &pulsar.ProducerMessage{Payload: stamped(*size)})
			m.receipt(m.began, err)
		}()
	}
	all.Wait()
	return m.end(ofPublished)
}
