// Apache's Go client with a token over TLS. One line of JSON says what became of each of three clients:
// one that may, one that may not, and one whose token is not known.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

var topic = os.Getenv("TOPIC")

// What the client writes to its log is kept: it tells the reason of a refused connection nowhere else.
func connect(token string, timeout time.Duration, log io.Writer) pulsar.Client {
	logger := logrus.New()
	logger.SetOutput(log)
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: os.Getenv("URL"), Authentication: pulsar.NewAuthenticationToken(token),
		TLSTrustCertsFilePath: os.Getenv("TRUST"), TLSValidateHostname: true,
		OperationTimeout: timeout, Logger: plog.NewLoggerWithLogrus(logger),
	})
	if err != nil {
		panic(err)
	}
	return client
}

func exchanged() string {
	client := connect(os.Getenv("ALLOWED"), 30*time.Second, io.Discard)
	defer client.Close()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "go"})
	if err != nil {
		return err.Error()
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err = producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("there and back")}); err != nil {
		return err.Error()
	}
	message, err := consumer.Receive(ctx)
	if err != nil {
		return err.Error()
	}
	return string(message.Payload())
}

func refused(token string, timeout time.Duration, log io.Writer) string {
	client := connect(token, timeout, log)
	defer client.Close()
	_, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	return fmt.Sprint(err)
}

func main() {
	var log strings.Builder
	found := map[string]string{
		"allowed": exchanged(),
		"denied":  refused(os.Getenv("DENIED"), 30*time.Second, io.Discard),
		"unknown": refused(os.Getenv("UNKNOWN"), 2*time.Second, &log),
	}
	found["log"] = log.String()
	line, _ := json.Marshal(found)
	fmt.Println(string(line))
}
