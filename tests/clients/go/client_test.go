// Apache's Go client, unmodified, against the server at PULSAR_TEST_URL.
// RESTART_PIPE and RESTART_DONE (server_process.py) let the last test kill that server with -9.
package clients

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const wait = 15 * time.Second

func newClient(t *testing.T) pulsar.Client {
	t.Helper()
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	c, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: os.Getenv("PULSAR_TEST_URL"), Logger: plog.NewLoggerWithLogrus(quiet), OperationTimeout: wait,
	})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newTopic() string {
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	return fmt.Sprintf("persistent://public/default/go-%x", random)
}

func names(first, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("m%d", first+i)
	}
	return all
}

func publish(t *testing.T, c pulsar.Client, o pulsar.ProducerOptions, first, count int) []pulsar.MessageID {
	t.Helper()
	p, err := c.CreateProducer(o)
	must(t, err)
	defer p.Close()
	ids := make([]pulsar.MessageID, count)
	var left sync.WaitGroup
	for i := range count {
		left.Add(1)
		p.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: []byte(fmt.Sprintf("m%d", first+i))},
			func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					t.Error(err)
				}
				ids[i] = id
				left.Done()
			})
	}
	must(t, p.FlushWithCtx(context.Background()))
	left.Wait()
	return ids
}

func subscribe(t *testing.T, c pulsar.Client, o pulsar.ConsumerOptions) pulsar.Consumer {
	t.Helper()
	consumer, err := c.Subscribe(o)
	must(t, err)
	return consumer
}

func next(t *testing.T, c pulsar.Consumer) pulsar.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	m, err := c.Receive(ctx)
	must(t, err)
	return m
}

func receive(t *testing.T, c pulsar.Consumer, count int) []string {
	t.Helper()
	got := make([]string, count)
	for i := range got {
		m := next(t, c)
		got[i] = string(m.Payload())
		must(t, c.Ack(m))
	}
	return got
}

func nothingComes(t *testing.T, c pulsar.Consumer, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if m, err := c.Receive(ctx); err == nil {
		t.Fatalf("unexpected %q %v", m.Payload(), m.ID())
	}
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestEachSubscriptionTypeReceivesInOrder(t *testing.T) {
	c := newClient(t)
	for _, kind := range []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared, pulsar.Failover, pulsar.KeyShared} {
		for _, unbatched := range []bool{true, false} {
			topic := newTopic()
			consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: kind})
			publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: unbatched}, 0, 200)
			equal(t, receive(t, consumer, 200), names(0, 200))
			nothingComes(t, consumer, 100*time.Millisecond)
			consumer.Close()
		}
	}
}

func TestCompression(t *testing.T) {
	c := newClient(t)
	for _, kind := range []pulsar.CompressionType{pulsar.LZ4, pulsar.ZLib, pulsar.ZSTD, pulsar.SNAPPY} {
		topic := newTopic()
		consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
		publish(t, c, pulsar.ProducerOptions{Topic: topic, CompressionType: kind}, 0, 50)
		equal(t, receive(t, consumer, 50), names(0, 50))
		consumer.Close()
	}
}

func TestChunking(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true, EnableChunking: true, ChunkMaxMessageSize: 100_000})
	must(t, err)
	payload := strings.Repeat("0123456789", 120_000)
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(payload)})
	must(t, err)
	m := next(t, consumer)
	if string(m.Payload()) != payload {
		t.Fatal("assembled payload differs")
	}
	must(t, consumer.Ack(m))
	nothingComes(t, consumer, 100*time.Millisecond)
}

type keys struct{ public, private []byte }

func (k keys) PublicKey(name string, _ map[string]string) (*crypto.EncryptionKeyInfo, error) {
	return crypto.NewEncryptionKeyInfo(name, k.public, nil), nil
}

func (k keys) PrivateKey(name string, _ map[string]string) (*crypto.EncryptionKeyInfo, error) {
	return crypto.NewEncryptionKeyInfo(name, k.private, nil), nil
}

func TestEncryption(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	pair := newKeys(t)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s",
		Decryption: &pulsar.MessageDecryptionInfo{KeyReader: pair}})
	publish(t, c, pulsar.ProducerOptions{Topic: topic,
		Encryption: &pulsar.ProducerEncryptionInfo{KeyReader: pair, Keys: []string{"k"}}}, 0, 10)
	equal(t, receive(t, consumer, 10), names(0, 10))
}

func TestPartitionedTopicRoutesByKey(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	createPartitioned(t, topic, 3)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	must(t, err)
	for i := range 60 {
		_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("x"), Key: fmt.Sprintf("k%d", i%10)})
		must(t, err)
	}
	partitions := map[string]int32{}
	for range 60 {
		m := next(t, consumer)
		if known, ok := partitions[m.Key()]; ok && known != m.ID().PartitionIdx() {
			t.Fatalf("key %s came from partitions %d and %d", m.Key(), known, m.ID().PartitionIdx())
		}
		partitions[m.Key()] = m.ID().PartitionIdx()
		must(t, consumer.Ack(m))
	}
}

func createPartitioned(t *testing.T, topic string, partitions int) {
	t.Helper()
	url := os.Getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/persistent/" + strings.TrimPrefix(topic, "persistent://") + "/partitions"
	request, err := http.NewRequest(http.MethodPut, url, strings.NewReader(fmt.Sprint(partitions)))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		t.Fatal(answer.Status)
	}
}

func TestRegexSubscription(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	publish(t, c, pulsar.ProducerOptions{Topic: topic + "-a"}, 0, 2)
	publish(t, c, pulsar.ProducerOptions{Topic: topic + "-b"}, 2, 2)
	publish(t, c, pulsar.ProducerOptions{Topic: topic + "x"}, 4, 2)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{TopicsPattern: topic + "-.*", SubscriptionName: "s",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest})
	got := receive(t, consumer, 4)
	slices.Sort(got)
	equal(t, got, names(0, 4))
	nothingComes(t, consumer, 200*time.Millisecond)
}

func TestReaderAndSeek(t *testing.T) {
	c := newClient(t)
	for _, unbatched := range []bool{true, false} {
		topic := newTopic()
		consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
		ids := publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: unbatched}, 0, 20)
		equal(t, readAll(t, c, topic, pulsar.EarliestMessageID(), false), names(0, 20))
		equal(t, readAll(t, c, topic, ids[9], false), names(10, 10))
		equal(t, readAll(t, c, topic, ids[9], true), names(9, 11))
		equal(t, receive(t, consumer, 20), names(0, 20))
		must(t, consumer.SeekByTime(time.Now().Add(-time.Hour)))
		equal(t, receive(t, consumer, 20), names(0, 20))
		must(t, consumer.SeekByTime(time.Now().Add(time.Hour)))
		nothingComes(t, consumer, 200*time.Millisecond)
		must(t, consumer.Seek(ids[0])) // this client leaves out the message it was told
		equal(t, receive(t, consumer, 19), names(1, 19))
	}
}

func readAll(t *testing.T, c pulsar.Client, topic string, from pulsar.MessageID, inclusive bool) []string {
	t.Helper()
	r, err := c.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: from, StartMessageIDInclusive: inclusive})
	must(t, err)
	defer r.Close()
	var got []string
	for r.HasNext() {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		m, err := r.Next(ctx)
		cancel()
		must(t, err)
		got = append(got, string(m.Payload()))
	}
	return got
}

func TestNegativeAck(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared,
		NackRedeliveryDelay: 100 * time.Millisecond})
	publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: true}, 0, 10)
	for i := range 10 {
		m := next(t, consumer)
		if i%2 == 0 {
			consumer.Nack(m)
		} else {
			must(t, consumer.Ack(m))
		}
	}
	for range 5 {
		m := next(t, consumer)
		if m.RedeliveryCount() != 1 {
			t.Fatalf("redelivery count %d", m.RedeliveryCount())
		}
		must(t, consumer.Ack(m))
	}
	nothingComes(t, consumer, 300*time.Millisecond)
}

func TestDeadLetterTopic(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	dead := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic + "-dlq", SubscriptionName: "d"})
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared,
		NackRedeliveryDelay: 50 * time.Millisecond, DLQ: &pulsar.DLQPolicy{MaxDeliveries: 2, DeadLetterTopic: topic + "-dlq"}})
	publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: true}, 0, 3)
	for range 6 {
		consumer.Nack(next(t, consumer))
	}
	go func() { // the client moves a message on when it is received once more
		for {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			_, err := consumer.Receive(ctx)
			cancel()
			if err != nil {
				return
			}
		}
	}()
	got := receive(t, dead, 3)
	slices.Sort(got)
	equal(t, got, names(0, 3))
}

func TestRetryLetterTopic(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared, RetryEnable: true,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 3, DeadLetterTopic: topic + "-dlq", RetryLetterTopic: topic + "-retry"}})
	publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: true}, 0, 1)
	consumer.ReconsumeLater(next(t, consumer), 100*time.Millisecond)
	again := next(t, consumer)
	if string(again.Payload()) != "m0" || !strings.Contains(again.Topic(), "-retry") {
		t.Fatalf("got %q from %s", again.Payload(), again.Topic())
	}
	must(t, consumer.Ack(again))
}

func TestBatchIndexAndCumulativeAcks(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	options := pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", EnableBatchIndexAcknowledgment: true, AckWithResponse: true}
	consumer := subscribe(t, c, options)
	publish(t, c, pulsar.ProducerOptions{Topic: topic, BatchingMaxPublishDelay: time.Second}, 0, 10)
	for i := range 10 {
		if m := next(t, consumer); i%2 == 1 {
			must(t, consumer.Ack(m))
		}
	}
	consumer.Close()
	consumer = subscribe(t, c, options)
	var got []string
	for range 5 {
		m := next(t, consumer)
		got = append(got, string(m.Payload()))
		if len(got) == 4 {
			must(t, consumer.AckCumulative(m))
		}
	}
	equal(t, got, []string{"m0", "m2", "m4", "m6", "m8"})
	consumer.Close()
	consumer = subscribe(t, c, options)
	equal(t, receive(t, consumer, 1), []string{"m8"})
	nothingComes(t, consumer, 200*time.Millisecond)
}

func TestAccessModes(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	first, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, ProducerAccessMode: pulsar.ProducerAccessModeExclusive})
	must(t, err)
	if _, err = c.CreateProducer(pulsar.ProducerOptions{Topic: topic}); err == nil {
		t.Fatal("a shared producer got in beside an exclusive one")
	}
	waiting := make(chan error, 1)
	go func() {
		p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, ProducerAccessMode: pulsar.ProducerAccessModeWaitForExclusive})
		if err == nil {
			_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("x")})
			p.Close()
		}
		waiting <- err
	}()
	select {
	case err := <-waiting:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	first.Close()
	select {
	case err := <-waiting:
		must(t, err)
	case <-time.After(wait):
		t.Fatal("never got its turn")
	}
}

func TestOversizeMessageIsRefusedAndTheProducerGoesOn(t *testing.T) {
	c := newClient(t)
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: newTopic(), DisableBatching: true})
	must(t, err)
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Payload: make([]byte, 6<<20)})
	if !errors.Is(err, pulsar.ErrMessageTooLarge) {
		t.Fatalf("got %v", err)
	}
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Payload: make([]byte, 4<<20)})
	must(t, err)
}

func TestSubscriptionFollowsKillMinusNine(t *testing.T) {
	pipe, done := os.Getenv("RESTART_PIPE"), os.Getenv("RESTART_DONE")
	if pipe == "" {
		t.Skip("the server is not ours to kill")
	}
	c := newClient(t)
	topic := newTopic()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared})
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true, SendTimeout: -1})
	must(t, err)
	var lock sync.Mutex
	confirmed := map[string]bool{}
	for round := range 3 {
		var left sync.WaitGroup
		for i := range 500 {
			name := fmt.Sprintf("%d-%d", round, i)
			left.Add(1)
			p.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: []byte(name)},
				func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
					defer left.Done()
					if err == nil {
						lock.Lock()
						confirmed[name] = true
						lock.Unlock()
					}
				})
		}
		if round < 2 {
			restart(t, pipe, done)
		}
		left.Wait()
	}
	if len(confirmed) != 1500 {
		t.Fatalf("confirmed %d", len(confirmed))
	}
	for len(confirmed) > 0 {
		m := next(t, consumer)
		delete(confirmed, string(m.Payload()))
		must(t, consumer.Ack(m))
	}
}

func restart(t *testing.T, pipe, done string) {
	t.Helper()
	before, _ := os.ReadFile(done)
	must(t, os.WriteFile(pipe, []byte("restart\n"), 0))
	for deadline := time.Now().Add(60 * time.Second); ; {
		if after, _ := os.ReadFile(done); len(after) > len(before) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server did not come back")
		}
		time.Sleep(20 * time.Millisecond)
	}
}
