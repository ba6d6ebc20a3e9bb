// Transactions: what they publish and acknowledge counts as a whole or not at all, and what goes wrong is told as its own kind.
package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

func newTransactionalClient(t *testing.T) pulsar.Client {
	t.Helper()
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	c, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: os.Getenv("PULSAR_TEST_URL"), Logger: plog.NewLoggerWithLogrus(quiet), OperationTimeout: wait, EnableTransaction: true,
	})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func begin(t *testing.T, c pulsar.Client) pulsar.Transaction {
	t.Helper()
	txn, err := c.NewTransaction(5 * time.Minute)
	must(t, err)
	return txn
}

func sendIn(t *testing.T, p pulsar.Producer, txn pulsar.Transaction, text string) {
	t.Helper()
	_, err := p.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(text), Transaction: txn})
	must(t, err)
}

func resultOf(err error) pulsar.Result {
	var told *pulsar.Error
	if errors.As(err, &told) {
		return told.Result()
	}
	return pulsar.Ok
}

func TestTransactionsCountAsAWholeOrNotAtAll(t *testing.T) {
	c := newTransactionalClient(t)
	from, to := newTopic(), newTopic()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: from, SubscriptionName: "s", Type: pulsar.Shared})
	reader := subscribe(t, c, pulsar.ConsumerOptions{
		Topic: to, SubscriptionName: "s", SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	producer, err := c.CreateProducer(pulsar.ProducerOptions{Topic: to, DisableBatching: true, SendTimeout: wait})
	must(t, err)
	defer producer.Close()
	publish(t, c, pulsar.ProducerOptions{Topic: from, DisableBatching: true}, 0, 2)
	aborted, committed := begin(t, c), begin(t, c)
	for i, txn := range []pulsar.Transaction{aborted, committed} {
		m := next(t, consumer)
		sendIn(t, producer, txn, fmt.Sprintf("a%d", i))
		sendIn(t, producer, txn, fmt.Sprintf("b%d", i))
		must(t, consumer.AckWithTxn(m, txn))
	}
	nothingComes(t, reader, 500*time.Millisecond)
	must(t, committed.Commit(context.Background()))
	nothingComes(t, reader, 500*time.Millisecond) // the other one came first and is open
	must(t, aborted.Abort(context.Background()))
	equal(t, receive(t, reader, 2), []string{"a1", "b1"})
	equal(t, receive(t, consumer, 1), names(0, 1)) // acknowledged by what was aborted only
	nothingComes(t, consumer, 500*time.Millisecond)
	nothingComes(t, reader, 100*time.Millisecond)
}

func TestWhatIsWrongWithATransactionIsToldAsItsOwnKind(t *testing.T) {
	c := newTransactionalClient(t)
	topic := newTopic()
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared})
	publish(t, c, pulsar.ProducerOptions{Topic: topic, DisableBatching: true}, 0, 1)
	m := next(t, consumer)
	first, second := begin(t, c), begin(t, c)
	must(t, consumer.AckWithTxn(m, first))
	if err := consumer.AckWithTxn(m, second); err == nil || !strings.Contains(err.Error(), "in pending ack status") {
		t.Fatalf("acknowledged twice: %v", err)
	}
	must(t, first.Commit(context.Background()))
	if err := first.Commit(context.Background()); resultOf(err) != pulsar.InvalidStatus {
		t.Fatalf("ended twice: %v", err)
	}
	gone := begin(t, c)
	id := gone.GetTxnID()
	path := fmt.Sprintf("/admin/v3/transactions/abortTransaction/%d/%d", id.MostSigBits, id.LeastSigBits)
	answer, err := http.Post(os.Getenv("PULSAR_TEST_WEB_URL")+path, "", nil)
	must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatal(answer.Status)
	}
	if err := gone.Commit(context.Background()); resultOf(err) != pulsar.TransactionNoFoundError {
		t.Fatalf("committed what is not there any more: %v", err)
	}
}
