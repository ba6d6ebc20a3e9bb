// Publishes at a paced rate to several topics in turn until its input ends; a line on stdout for each answer.
// Arguments: service URL, messages a second, send time-out in milliseconds, topics. Times are of CLOCK_MONOTONIC, in ns.
// A message begins with its number (8 bytes, big endian), which the line of its answer names.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/apache/pulsar-client-go/pulsar"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const clockMonotonic = 1

func now() int64 {
	var spec syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&spec)), 0)
	return spec.Nano()
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	arguments := os.Args[1:]
	ends := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ends)
	}()
	quiet := logrus.New()
	quiet.SetLevel(logrus.ErrorLevel)
	client := must(pulsar.NewClient(pulsar.ClientOptions{URL: arguments[0], Logger: plog.NewLoggerWithLogrus(quiet)}))
	defer client.Close()
	timeout := time.Duration(must(strconv.Atoi(arguments[2]))) * time.Millisecond
	var producers []pulsar.Producer
	for _, topic := range arguments[3:] {
		producers = append(producers, must(client.CreateProducer(pulsar.ProducerOptions{
			Topic: topic, DisableBatching: true, MaxPendingMessages: 50_000, SendTimeout: timeout,
		})))
	}
	publish(producers, int64(1e9/must(strconv.ParseFloat(arguments[1], 64))), ends)
}

func publish(producers []pulsar.Producer, step int64, ends chan struct{}) {
	out, lock := bufio.NewWriter(os.Stdout), sync.Mutex{}
	due := now()
	for number := 0; ; number, due = number+1, due+step {
		select {
		case <-ends:
			return
		case <-time.After(time.Duration(due - now())):
		}
		topic, number, due := number%len(producers), number, due
		payload := make([]byte, 1024)
		binary.BigEndian.PutUint64(payload, uint64(number))
		producers[topic].SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: payload},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				lock.Lock()
				defer lock.Unlock()
				if err == nil {
					fmt.Fprintln(out, "answered", topic, due, now()-due, number)
				} else {
					fmt.Fprintln(out, "failed", topic, err)
				}
				out.Flush()
			})
	}
}
