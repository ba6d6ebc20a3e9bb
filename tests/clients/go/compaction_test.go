package clients

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func ask(t *testing.T, method, topic, what string) string {
	t.Helper()
	url := os.Getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/" + what
	request, err := http.NewRequest(method, url, nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, url, answer.StatusCode, body)
	}
	return string(body)
}

func compact(t *testing.T, topic string) {
	t.Helper()
	ask(t, "PUT", topic, "compaction")
	until(t, func() bool {
		status := ask(t, "GET", topic, "compaction")
		if strings.Contains(status, "ERROR") {
			t.Fatal(status)
		}
		return strings.Contains(status, "SUCCESS")
	})
}

func until(t *testing.T, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to that")
		}
	}
}

func put(t *testing.T, p pulsar.Producer, key, value string) {
	t.Helper()
	_, err := p.Send(context.Background(), &pulsar.ProducerMessage{Key: key, Value: value})
	must(t, err)
}

func tableView(t *testing.T, c pulsar.Client, topic string) pulsar.TableView {
	t.Helper()
	view, err := c.CreateTableView(pulsar.TableViewOptions{
		Topic: topic, Schema: pulsar.NewStringSchema(nil), SchemaValueType: reflect.TypeFor[*string](),
	})
	must(t, err)
	t.Cleanup(view.Close)
	return view
}

func entriesOf(view pulsar.TableView) map[string]string {
	found := map[string]string{}
	for key, value := range view.Entries() {
		found[key] = *value.(*string)
	}
	return found
}

// What is read of a compacted topic from its beginning: the newest of each key, tombstones that came after it too.
func readCompacted(t *testing.T, c pulsar.Client, topic string) (map[string]string, int) {
	t.Helper()
	r, err := c.CreateReader(pulsar.ReaderOptions{
		Topic: topic, StartMessageID: pulsar.EarliestMessageID(), ReadCompacted: true,
	})
	must(t, err)
	defer r.Close()
	found, count := map[string]string{}, 0
	for r.HasNext() {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		m, err := r.Next(ctx)
		cancel()
		must(t, err)
		if m.Key() == "" {
			continue // this client hands out what is compacted out of a batch, without key and payload
		}
		count++
		if len(m.Payload()) == 0 {
			delete(found, m.Key())
		} else {
			found[m.Key()] = string(bytes.Clone(m.Payload()))
		}
	}
	return found, count
}

func TestCompactedTopicsTheirTableViewsAndTheEndOfATopicSurviveKillMinusNine(t *testing.T) {
	pipe, done := os.Getenv("RESTART_PIPE"), os.Getenv("RESTART_DONE")
	if pipe == "" {
		t.Skip("the server is not ours to kill")
	}
	c := newClient(t)
	topic, ended := newTopic(), newTopic()
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewStringSchema(nil)})
	must(t, err)
	defer p.Close()
	newest := map[string]string{}
	for i := range 100 {
		key := fmt.Sprintf("k%d", i%20)
		newest[key] = fmt.Sprintf("v%d", i)
		p.SendAsync(context.Background(), &pulsar.ProducerMessage{Key: key, Value: newest[key]},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					t.Error(err)
				}
			})
	}
	must(t, p.FlushWithCtx(context.Background()))
	put(t, p, "k0", "")
	delete(newest, "k0")
	compact(t, topic)
	if got, count := readCompacted(t, c, topic); !maps.Equal(got, newest) || count != len(newest) {
		t.Fatalf("%d messages: %v", count, got)
	}
	view := tableView(t, c, topic)
	until(t, func() bool { return maps.Equal(entriesOf(view), newest) })

	publish(t, c, pulsar.ProducerOptions{Topic: ended, DisableBatching: true}, 0, 2)
	ask(t, "POST", ended, "terminate")
	restart(t, pipe, done)
	put(t, p, "k1", "changed")
	put(t, p, "k2", "")
	newest["k1"] = "changed"
	delete(newest, "k2")
	until(t, func() bool { return maps.Equal(entriesOf(view), newest) })
	compact(t, topic)
	if got, count := readCompacted(t, c, topic); !maps.Equal(got, newest) || count != len(newest) {
		t.Fatalf("%d messages after kill -9: %v", count, got)
	}
	again := tableView(t, c, topic)
	until(t, func() bool { return maps.Equal(entriesOf(again), newest) })

	if _, err := c.CreateProducer(pulsar.ProducerOptions{Topic: ended}); err == nil || !strings.Contains(err.Error(), "TopicTerminated") {
		t.Fatalf("a producer on a terminated topic: %v", err)
	}
	reader, err := c.CreateReader(pulsar.ReaderOptions{Topic: ended, StartMessageID: pulsar.EarliestMessageID()})
	must(t, err)
	defer reader.Close()
	for _, name := range names(0, 2) {
		m, err := reader.Next(context.Background())
		must(t, err)
		if string(m.Payload()) != name {
			t.Fatal(string(m.Payload()))
		}
	}
	if reader.HasNext() {
		t.Fatal("a message after the end")
	}
}
