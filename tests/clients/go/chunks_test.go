package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var kinds = []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared, pulsar.Failover, pulsar.KeyShared}

var backlogs = regexp.MustCompile(`"msgBacklog":(\d+)`)

func untilAllIsAcknowledged(t *testing.T, topic string) {
	t.Helper()
	until(t, func() bool {
		found := backlogs.FindStringSubmatch(ask(t, "GET", topic, "stats"))
		return found != nil && found[1] == "0"
	})
}

func chunking(t *testing.T, c pulsar.Client, topic string) pulsar.Producer {
	t.Helper()
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true, EnableChunking: true, ChunkMaxMessageSize: 500})
	must(t, err)
	return p
}

func large(name string) []byte { return []byte(fmt.Sprintf("%-2000s", name)) }

func TestEachMessageInChunksComesWholeToOneOfSeveralConsumers(t *testing.T) {
	c := newClient(t)
	for _, kind := range []pulsar.SubscriptionType{pulsar.Shared, pulsar.KeyShared} {
		topic := newTopic()
		var consumers [3]pulsar.Consumer
		var producers [2]pulsar.Producer
		for i := range consumers {
			consumers[i] = subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: kind, ReceiverQueueSize: 4})
		}
		for i := range producers {
			producers[i] = chunking(t, c, topic)
		}
		for i := range 40 {
			m := &pulsar.ProducerMessage{Payload: large(fmt.Sprintf("m%d", i)), Key: fmt.Sprintf("k%d", i%7)}
			producers[i%2].SendAsync(context.Background(), m, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		got := map[string]bool{}
		deadline := time.Now().Add(60 * time.Second)
		for i := 0; len(got) < 40 && time.Now().Before(deadline); i++ {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			m, err := consumers[i%3].Receive(ctx)
			cancel()
			if err != nil {
				continue
			}
			name := strings.TrimSpace(string(m.Payload()))
			if len(m.Payload()) != 2000 || got[name] {
				t.Fatalf("%d bytes of %s, before: %v", len(m.Payload()), name, got[name])
			}
			got[name] = true
			must(t, consumers[i%3].Ack(m))
		}
		if len(got) != 40 {
			t.Fatalf("type %d: only %d came", kind, len(got))
		}
		untilAllIsAcknowledged(t, topic)
		for _, p := range producers {
			p.Close()
		}
		for _, consumer := range consumers {
			consumer.Close()
		}
	}
}

// F22 (apache/pulsar#26395): the rest of a message of which a chunk is gone expires, and holds nobody up.
func TestChunksOfAMessageThatNeverBecomesWholeExpireAndNothingWaitsBehindThem(t *testing.T) {
	c := newClient(t)
	for _, kind := range kinds {
		topic := newTopic()
		o := pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: kind, ExpireTimeOfIncompleteChunk: time.Second,
			AutoAckIncompleteChunk: true, AckWithResponse: true, ReceiverQueueSize: 2}
		subscribe(t, c, o).Close()
		p := chunking(t, c, topic)
		id, err := p.Send(context.Background(), &pulsar.ProducerMessage{Payload: large("never"), Key: "k"})
		must(t, err)
		p.Close()
		publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: true}, 0, 1)
		away := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: kind, AckWithResponse: true})
		must(t, away.AckID(pulsar.NewMessageID(id.LedgerID(), id.EntryID(), -1, 0))) // its last chunk
		away.Close()
		consumer := subscribe(t, c, o)
		equal(t, receive(t, consumer, 1), names(0, 1))
		untilAllIsAcknowledged(t, topic)
		nothingComes(t, consumer, 100*time.Millisecond)
		consumer.Close()
	}
}

func TestWhoPublishesToATerminatedTopicIsToldAndWhatIsThereIsRead(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	must(t, err)
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("m0")})
	must(t, err)
	ask(t, "POST", topic, "terminate")
	if _, err := p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("late")}); !errors.Is(err, pulsar.ErrTopicTerminated) {
		t.Fatalf("got %v", err)
	}
	equal(t, receive(t, consumer, 1), names(0, 1))
	nothingComes(t, consumer, 100*time.Millisecond)
}

func TestARegexFollowsTopicsThatComeAndGo(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	publish(t, c, pulsar.ProducerOptions{Topic: topic + "-a"}, 0, 2)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{TopicsPattern: topic + "-.*", SubscriptionName: "s",
		AutoDiscoveryPeriod: 200 * time.Millisecond, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest})
	equal(t, receive(t, consumer, 2), names(0, 2))
	publish(t, c, pulsar.ProducerOptions{Topic: topic + "-b", DisableBatching: true}, 2, 2)
	equal(t, receive(t, consumer, 2), names(2, 2))
	deleteTopic(t, topic+"-a")
	publish(t, c, pulsar.ProducerOptions{Topic: topic + "-b", DisableBatching: true}, 4, 1)
	publish(t, c, pulsar.ProducerOptions{Topic: topic + "-c", DisableBatching: true}, 5, 1)
	got := receive(t, consumer, 2)
	slices.Sort(got)
	equal(t, got, names(4, 2))
}

func deleteTopic(t *testing.T, topic string) {
	t.Helper()
	url := os.Getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "?force=true"
	request, err := http.NewRequest(http.MethodDelete, url, nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusNoContent {
		t.Fatal(answer.Status)
	}
}
