package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const backoffMax = 2 * time.Second

// handshakes begins all connections at once, and closes them when all are connected.
func handshakes() row {
	var m meter
	var all sync.WaitGroup
	lines := make([]*line, *number)
	m.begin()
	for i := range lines {
		all.Add(1)
		go func() {
			defer all.Done()
			made, err := dialled(4096)
			m.receipt(m.began, err)
			lines[i] = made
		}()
	}
	all.Wait()
	told := m.end(ofPublished)
	for _, each := range lines {
		if each != nil {
			each.Close()
		}
	}
	return told
}

// returning keeps its connections over a restart of the broker, which whoever started this does when it reads "opened".
// A connection is back when its producer is there again and one more message is stored. A line tells of the first one.
func returning() row {
	var open, back sync.WaitGroup
	var first atomic.Int64
	var m meter
	open.Add(*number)
	back.Add(*number)
	m.on.Store(true)
	gate := make(chan struct{}, 200) // how many connect at a time at first
	for i := range *number {
		go func() {
			gate <- struct{}{}
			mine, err := produced(i, 0)
			<-gate
			fail("first connection", err)
			open.Done()
			_, err = mine.next()
			for err == nil {
				_, err = mine.next()
			}
			mine.Close()
			if mine, err = reconnected(i, &m, &first); err != nil {
				fail("connection that returns", err)
			}
			m.receipt(time.Unix(0, first.Load()), nil)
			back.Done()
			_, _ = mine.next() // answers PING until the end
		}()
	}
	open.Wait()
	tell(row{"opened": *number})
	_ = must(bufio.NewReader(os.Stdin).ReadString('\n')) // the broker is down now
	m.began = time.Now()
	back.Wait()
	told := m.end(ofPublished)
	told["all_back_after_first_s"] = rounded(time.Since(time.Unix(0, first.Load())).Seconds())
	told["failed_attempts"], told["errors"] = m.lost.Load(), 0
	return told
}

func produced(i int, sequence uint64) (*line, error) {
	mine, err := dialled(4096)
	if err != nil {
		return nil, err
	}
	if err = mine.produceOn(fmt.Sprintf("%s-%d", *topic, i%*topics), 0); err == nil {
		err = mine.write(sendFrame(0, sequence, make([]byte, 100)))
	}
	if err == nil {
		_, err = mine.expect(receipt)
	}
	if err != nil {
		mine.Close()
	}
	return mine, err
}

// reconnected tries until it succeeds, with the pauses of a client: 100 ms, doubled up to two seconds, scattered.
func reconnected(i int, m *meter, first *atomic.Int64) (*line, error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, backoffMax) {
		time.Sleep(time.Duration(float64(pause) * (0.8 + 0.2*rand.Float64())))
		mine, err := produced(i, 1)
		if err == nil {
			if first.CompareAndSwap(0, time.Now().UnixNano()) {
				tell(row{"first": true})
			}
			return mine, nil
		}
		m.lost.Add(1)
	}
}
