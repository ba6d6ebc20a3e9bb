//go:build entrymetadata

package clients

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// The server has both of Apache's interceptors, and shows what they stored to clients that know it, as this one says it does.
func TestBrokerEntryMetadata(t *testing.T) {
	topic := os.Getenv("TOPIC")
	c := newClient(t)
	before := time.Now().Add(-time.Minute)
	first := publish(t, c, pulsar.ProducerOptions{Topic: topic, BatchingMaxPublishDelay: time.Second}, 0, 10)
	publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: true}, 10, 3)
	if first[0].EntryID() != first[9].EntryID() {
		t.Fatal("no batch")
	}
	reader, err := c.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	must(t, err)
	defer reader.Close()
	for i := uint64(0); reader.HasNext(); i++ {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		m, err := reader.Next(ctx)
		cancel()
		must(t, err)
		if m.Index() == nil {
			t.Fatalf("message %d has no index", i)
		}
		if *m.Index() != i {
			t.Fatalf("message %d has the index %d", i, *m.Index())
		}
		if m.BrokerPublishTime() == nil || m.BrokerPublishTime().Before(before) {
			t.Fatalf("message %d came to the broker at %v", i, m.BrokerPublishTime())
		}
	}
}
