package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

const (
	subscribers = 10 // connections over which the subscriptions are spread
	underWay    = 100
	shared      = 1
)

// subscriptions makes many durable ones on a topic, each with its consumer, and publishes a few messages to all of them.
func subscriptions() row {
	var m meter
	var all sync.WaitGroup
	before := useOf(*pids)
	began := time.Now()
	lines := make([]*line, subscribers)
	for at := range lines {
		lines[at] = must(dialled(1 << 20))
		all.Add(1)
		go func() {
			defer all.Done()
			subscribeMany(lines[at], at)
		}()
	}
	all.Wait()
	made := row{"seconds": rounded(time.Since(began).Seconds()), "server_cpu_s": rounded(useOf(*pids).cpu - before.cpu)}
	m.begin()
	for _, each := range lines {
		all.Add(1)
		go func() {
			defer all.Done()
			for range *number / subscribers * *messages {
				fail("delivery", each.delivered(&m))
			}
		}()
	}
	publishOneByOne(&m)
	all.Wait()
	told := m.end(ofReceived)
	told["subscribing"], told["subscriptions"], told["rss_before_MB"] = made, *number, rounded(before.resident)
	return told
}

func subscribeMany(over *line, at int) {
	count, asked := *number/subscribers, 0
	for answered := range count {
		for ; asked < count && asked < answered+underWay; asked++ {
			id := uint64(asked)
			of := body{}.text(1, *topic).text(2, fmt.Sprintf("s-%d-%d", at, asked)).number(3, shared).number(4, id).number(5, id+1)
			fail("subscribe", over.write(frameOf(subscribe, of, nil)))
		}
		_, err := over.expect(success)
		fail("subscribe", err)
	}
	for id := range uint64(count) {
		fail("flow", over.write(frameOf(flow, body{}.number(1, id).number(2, 1000), nil)))
	}
}

// delivered takes one message and acknowledges it.
func (l *line) delivered(m *meter) error {
	got, err := l.next()
	if err != nil || got.kind != message {
		return fmt.Errorf("command %d, %v", got.kind, err)
	}
	id, _ := field(got.body, 1)
	_, messageID := field(got.body, 2)
	m.delivery(payloadOf(got.rest))
	of := body{}.number(1, id).number(2, 0).nested(3, messageID)
	return l.write(frameOf(ack, of, nil))
}

// payloadOf is what follows magic, checksum and metadata.
func payloadOf(section []byte) []byte {
	return section[10+binary.BigEndian.Uint32(section[6:]):]
}

func publishOneByOne(m *meter) {
	mine := must(dialled(4096))
	fail("producer", mine.produceOn(*topic, 0))
	for sequence := range uint64(*messages) {
		at := time.Now()
		err := mine.write(sendFrame(0, sequence, stamped(100)))
		if err == nil {
			_, err = mine.expect(receipt)
		}
		m.receipt(at, err)
	}
}
