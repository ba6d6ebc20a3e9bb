//go:build cluster

package clients

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
)

// Against a cluster: PULSAR_TEST_TOPIC is served by the process PULSAR_TEST_OWNER, which is not the broker at PULSAR_TEST_URL.
func TestAKilledBrokersTopicGoesOnAtAnother(t *testing.T) {
	const count = 300
	topic := os.Getenv("PULSAR_TEST_TOPIC")
	owner, err := strconv.Atoi(os.Getenv("PULSAR_TEST_OWNER"))
	must(t, err)
	c := newClient(t)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "go"})
	defer consumer.Close()
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true, SendTimeout: -1})
	must(t, err)
	defer p.Close()
	var left sync.WaitGroup
	for i := range count {
		left.Add(1)
		p.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: []byte(fmt.Sprintf("m%d", i))},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					t.Error(err)
				}
				left.Done()
			})
		if i == count/2 {
			must(t, syscall.Kill(owner, syscall.SIGKILL))
		}
	}
	left.Wait()
	seen := map[string]bool{}
	for len(seen) < count {
		ctx, cancel := context.WithTimeout(context.Background(), 2*wait)
		message, err := consumer.Receive(ctx)
		cancel()
		must(t, err)
		text := string(message.Payload())
		if !seen[text] && text != fmt.Sprintf("m%d", len(seen)) {
			t.Fatalf("%s came after m%d", text, len(seen)-1)
		}
		seen[text] = true
		must(t, consumer.Ack(message))
	}
}
