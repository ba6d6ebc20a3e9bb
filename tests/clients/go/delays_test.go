package clients

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const tick = time.Second

// post sends to the admin REST a policy of the topic.
func post(t *testing.T, topic, policy, body string) {
	t.Helper()
	send(t, http.MethodPost, topic, policy, body)
}

func send(t *testing.T, method, topic, policy, body string) {
	t.Helper()
	url := os.Getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/" + policy
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("%s %s: %s", method, url, answer.Status)
	}
}

func TestDelayedMessagesComeInTheirTimeAndNothingWaitsBehindThem(t *testing.T) {
	c := newClient(t)
	for _, kind := range []pulsar.SubscriptionType{pulsar.Shared, pulsar.KeyShared} {
		topic := newTopic()
		consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: kind})
		p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
		must(t, err)
		due := time.Now().Add(8 * time.Second)
		for _, m := range []*pulsar.ProducerMessage{
			{Payload: []byte("at"), Key: "a", DeliverAt: due},
			{Payload: []byte("after"), Key: "b", DeliverAfter: time.Until(due)},
			{Payload: []byte("long past"), Key: "a", DeliverAt: time.UnixMilli(1)},
			{Payload: []byte("now"), Key: "a"},
		} {
			_, err := p.Send(context.Background(), m)
			must(t, err)
		}
		equal(t, receive(t, consumer, 2), []string{"long past", "now"})
		got := receive(t, consumer, 2)
		slices.Sort(got)
		equal(t, got, []string{"after", "at"})
		if time.Now().Before(due.Add(-tick)) {
			t.Fatal("early")
		}
		nothingComes(t, consumer, 300*time.Millisecond)
		consumer.Close()
	}
}

func TestWhatIsSentAgainIsStoredOnceAlsoOverAKill(t *testing.T) {
	pipe, done := os.Getenv("RESTART_PIPE"), os.Getenv("RESTART_DONE")
	if pipe == "" {
		t.Skip("the server is not ours to kill")
	}
	c := newClient(t)
	topic := newTopic()
	earliest := pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest}
	subscribe(t, c, earliest).Close()
	post(t, topic, "deduplicationEnabled", "true")
	publishFrom := func(first, count int64) {
		p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: true})
		must(t, err)
		defer p.Close()
		for number := first; number < first+count; number++ {
			_, err := p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(fmt.Sprintf("m%d", number)), SequenceID: &number})
			must(t, err)
		}
		if last := p.LastSequenceID(); last != first+count-1 {
			t.Fatalf("last sequence id %d", last)
		}
	}
	publishFrom(0, 20)
	restart(t, pipe, done)
	publishFrom(0, 20)
	publishFrom(10, 20)
	consumer := subscribe(t, c, earliest) // only now: what a client has in its queue over a kill comes again
	equal(t, receive(t, consumer, 30), names(0, 30))
	nothingComes(t, consumer, 300*time.Millisecond)
}
