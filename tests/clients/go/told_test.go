package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// What the broker says of itself, and how soon: clients of this kind drop what comes before they can use it.

type becameActive chan string

func (told becameActive) BecameActive(_ pulsar.Consumer, topic string, _ int32) { told <- topic }
func (told becameActive) BecameInactive(pulsar.Consumer, string, int32)         {}

func TestEveryConsumerOfAFailoverSubscriptionHearsThatItIsActive(t *testing.T) {
	const topics = 10
	c := newClient(t)
	told := make(becameActive, topics)
	missing := map[string]bool{}
	for range topics {
		topic := newTopic()
		missing[topic] = true
		consumer := subscribe(t, c, pulsar.ConsumerOptions{
			Topic: topic, SubscriptionName: "s", Type: pulsar.Failover, EventListener: told,
		})
		defer consumer.Close()
	}
	for range topics {
		select {
		case topic := <-told:
			delete(missing, topic)
		case <-time.After(wait):
			t.Fatalf("nobody told %v", missing)
		}
	}
}

func TestWhoeverSendsWhileATopicIsTerminatedHearsThatItIs(t *testing.T) {
	c := newClient(t)
	for range 5 {
		topic := newTopic()
		p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true, SendTimeout: 2 * wait})
		must(t, err)
		failed := make(chan error, 1)
		var begun sync.Once
		isSending := make(chan bool)
		go func() {
			for {
				if _, err := p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("m")}); err != nil {
					failed <- err
					return
				}
				begun.Do(func() { close(isSending) })
			}
		}()
		<-isSending
		ask(t, "POST", topic, "terminate")
		select {
		case err := <-failed:
			if !errors.Is(err, pulsar.ErrTopicTerminated) && !errors.Is(err, pulsar.ErrProducerClosed) {
				t.Fatal(err)
			}
		case <-time.After(wait):
			t.Fatal("its send has not ended")
		}
		p.Close()
	}
}

func TestBytesAreASchemaWhoseVersionCanBeAskedFor(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewBytesSchema(nil)})
	must(t, err)
	defer p.Close()
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Value: []byte("some")})
	must(t, err)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "s", Schema: pulsar.NewBytesSchema(nil),
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	defer consumer.Close()
	var got []byte
	must(t, next(t, consumer).GetSchemaValue(&got))
	if string(got) != "some" {
		t.Fatalf("got %q", got)
	}
}

func TestAPatternOverANamespaceThatIsNotThereFindsNothingAtOnce(t *testing.T) {
	c := newClient(t)
	name := strings.TrimPrefix(newTopic(), "persistent://public/default/")
	began := time.Now()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{
		TopicsPattern: fmt.Sprintf("persistent://public/%s/.*", name), SubscriptionName: "s",
	})
	defer consumer.Close()
	if took := time.Since(began); took > wait {
		t.Fatalf("took %v", took)
	}
}
