package clients

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// Topics that keep nothing: non-persistent://.

func TestWhoeverIsThereGetsWhatIsPublishedToANonPersistentTopic(t *testing.T) {
	c := newClient(t)
	for _, kind := range []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared, pulsar.Failover, pulsar.KeyShared} {
		topic := "non-" + newTopic()
		o := pulsar.ProducerOptions{Topic: topic, DisableBatching: true}
		publish(t, c, o, 0, 2)
		consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: kind})
		awaitPermits(t, c, consumer, o)
		for _, id := range publish(t, c, o, 2, 10) {
			if id.LedgerID() != 0 || id.EntryID() != 0 {
				t.Fatalf("%v has an id of its own", id)
			}
		}
		var got []string
		for len(got) < 10 {
			if text := string(next(t, consumer).Payload()); text != "m1000" {
				got = append(got, text)
			}
		}
		if !slices.Equal(got, names(2, 10)) {
			t.Fatalf("type %d: %v", kind, got)
		}
		consumer.Close()
	}
}

// awaitPermits publishes m1000 until it comes: this client asks for messages some time after it has subscribed.
func awaitPermits(t *testing.T, c pulsar.Client, consumer pulsar.Consumer, o pulsar.ProducerOptions) {
	t.Helper()
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); {
		publish(t, c, o, 1000, 1)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_, err := consumer.Receive(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatal("nothing came")
}

type first struct {
	Name  string `json:"name" avro:"name"`
	Count int    `json:"count" avro:"count"`
}

const (
	firstSchema = `{"type":"record","name":"T","fields":[{"name":"name","type":"string"},{"name":"count","type":"int"}]}`
	otherSchema = `{"type":"record","name":"T","fields":[{"name":"name","type":"long"}]}`
)

func TestStructuresGoThroughTheSchemaRegistry(t *testing.T) {
	c := newClient(t)
	for _, make := range []func(string) pulsar.Schema{
		func(text string) pulsar.Schema { return pulsar.NewAvroSchema(text, nil) },
		func(text string) pulsar.Schema { return pulsar.NewJSONSchema(text, nil) },
	} {
		topic := newTopic()
		p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: make(firstSchema)})
		must(t, err)
		consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Schema: make(firstSchema)})
		_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Value: &first{"a", 1}})
		must(t, err)
		var got first
		must(t, next(t, consumer).GetSchemaValue(&got))
		if got != (first{"a", 1}) {
			t.Fatalf("got %v", got)
		}
		other := pulsar.ProducerOptions{Topic: topic, Schema: make(otherSchema), MaxReconnectToBroker: new(uint)}
		if wrong, err := c.CreateProducer(other); err == nil {
			wrong.Close()
			t.Fatal("a schema that does not fit was taken")
		} else if !strings.Contains(err.Error(), "IncompatibleSchema") {
			t.Fatalf("refused otherwise: %v", err)
		}
		p.Close()
		consumer.Close()
	}
}
