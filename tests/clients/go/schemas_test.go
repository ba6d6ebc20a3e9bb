package clients

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// isTaken says whether a producer with this schema gets in; it fails when it is refused for another reason.
func isTaken(t *testing.T, c pulsar.Client, topic string, schema pulsar.Schema) bool {
	t.Helper()
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: schema, MaxReconnectToBroker: new(uint)})
	if err == nil {
		p.Close()
	} else if !strings.Contains(err.Error(), "IncompatibleSchema") {
		t.Fatal(err)
	}
	return err == nil
}

func TestMessagesOfProtobufGoThroughAndOthersAreRefused(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	schema := pulsar.NewProtoNativeSchemaWithMessage(&timestamppb.Timestamp{}, nil)
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	must(t, err)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Schema: schema})
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Value: &timestamppb.Timestamp{Seconds: 7}})
	must(t, err)
	var got timestamppb.Timestamp
	must(t, next(t, consumer).GetSchemaValue(&got))
	if got.Seconds != 7 {
		t.Fatalf("got %v", got.Seconds)
	}
	if isTaken(t, c, topic, pulsar.NewProtoNativeSchemaWithMessage(&wrapperspb.StringValue{}, nil)) {
		t.Fatal("another message was taken")
	}
	p.Close()
	consumer.Close()
}

func TestWhatMayFollowIsAsTheTopicsStrategySays(t *testing.T) {
	c := newClient(t)
	one := `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`
	more := `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}`
	for strategy, want := range map[string][2]bool{ // may a field be added; may it be taken away
		"ALWAYS_COMPATIBLE": {true, true}, "ALWAYS_INCOMPATIBLE": {false, false},
		"BACKWARD": {false, true}, "FORWARD": {true, false}, "FULL": {false, false},
		"BACKWARD_TRANSITIVE": {false, true}, "FORWARD_TRANSITIVE": {true, false}, "FULL_TRANSITIVE": {false, false},
	} {
		for i, versions := range [][2]string{{one, more}, {more, one}} {
			topic := newTopic()
			publish(t, c, pulsar.ProducerOptions{Topic: topic}, 0, 0)
			send(t, "PUT", topic, "schemaCompatibilityStrategy", `"`+strategy+`"`)
			if !isTaken(t, c, topic, pulsar.NewAvroSchema(versions[0], nil)) {
				t.Fatal("the first was refused")
			}
			if got := isTaken(t, c, topic, pulsar.NewAvroSchema(versions[1], nil)); got != want[i] {
				t.Errorf("%s, %d: %v", strategy, i, got)
			}
		}
	}
}

func TestWhoBringsNoSchemaIsRefusedWhereTheNamespaceSaysSo(t *testing.T) {
	c := newClient(t)
	namespace := strings.Replace(newTopic(), "persistent://public/default/", "public/", 1)
	send(t, "PUT", "namespaces", namespace, "{}")
	send(t, "POST", "namespaces", namespace+"/schemaValidationEnforced", "true")
	topic := "persistent://" + namespace + "/t"
	if !isTaken(t, c, topic, nil) {
		t.Fatal("refused before the topic had a schema")
	}
	schema := pulsar.NewJSONSchema(firstSchema, nil)
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	must(t, err)
	raw := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "raw"})
	if isTaken(t, c, topic, nil) {
		t.Fatal("a producer without a schema was taken")
	}
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Value: &first{"a", 1}})
	must(t, err)
	equal(t, receive(t, raw, 1), []string{`{"name":"a","count":1}`})
	p.Close()
	raw.Close()
}

func TestPrimitivesHaveSchemasToo(t *testing.T) {
	c := newClient(t)
	topic := newTopic()
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewInt64Schema(nil)})
	must(t, err)
	consumer := subscribe(t, c, pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Schema: pulsar.NewInt64Schema(nil)})
	_, err = p.Send(context.Background(), &pulsar.ProducerMessage{Value: int64(1) << 40})
	must(t, err)
	var got int64
	must(t, next(t, consumer).GetSchemaValue(&got))
	if got != 1<<40 {
		t.Fatalf("got %v", got)
	}
	if isTaken(t, c, topic, pulsar.NewStringSchema(nil)) {
		t.Fatal("text was taken")
	}
	p.Close()
	consumer.Close()
}
