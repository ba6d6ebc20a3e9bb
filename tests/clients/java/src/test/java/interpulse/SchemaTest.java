package interpulse;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.protobuf.StringValue;
import com.google.protobuf.Timestamp;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaInfo;
import org.apache.pulsar.common.schema.SchemaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The schema registry, as Java's typed producers and consumers use it. */
class SchemaTest extends Fixture {
  public static class First {
    public String name;
    public int count;
  }

  /** What can read what First wrote, and the other way round: a field more, with a default. */
  public static class Second {
    public String name;
    public int count;
    public String color;
  }

  public static class Other {
    public long name;
  }

  private static <T> Schema<T> avro(Class<T> of) {
    return Schema.AVRO(SchemaDefinition.<T>builder().withPojo(of).withAlwaysAllowNull(true).build());
  }

  private static First first(String name, int count) {
    First made = new First();
    made.name = name;
    made.count = count;
    return made;
  }

  private static <T> Consumer<T> consumer(Schema<T> schema, String topic, String name) throws Exception {
    return client.newConsumer(schema).topic(topic).subscriptionName(name)
        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
  }

  private static <T> Message<T> typed(Consumer<T> consumer) throws Exception {
    Message<T> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
    consumer.acknowledge(message);
    return message;
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void structuresAreReadWithAnySchemaThatFits(boolean isAvro) throws Exception {
    String topic = newTopic();
    Schema<First> schema = isAvro ? avro(First.class) : Schema.JSON(First.class);
    try (Producer<First> producer = client.newProducer(schema).topic(topic).create();
        Consumer<First> same = consumer(schema, topic, "same");
        Consumer<GenericRecord> any = consumer(Schema.AUTO_CONSUME(), topic, "any");
        Producer<byte[]> raw = client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(topic).create()) {
      producer.send(first("a", 1));
      raw.send(schema.encode(first("b", 2)));
      for (String name : List.of("a", "b")) {
        assertEquals(name, typed(same).getValue().name);
        assertEquals(name, typed(any).getValue().getField("name"));
      }
    }
  }

  @Test
  void aNewVersionReadsWhatTheOldOneWroteAndEachMessageKnowsItsOwn() throws Exception {
    String topic = newTopic();
    try (Producer<First> old = client.newProducer(avro(First.class)).topic(topic).create();
        Producer<Second> young = client.newProducer(avro(Second.class)).topic(topic).create();
        Consumer<Second> reader = consumer(avro(Second.class), topic, "young");
        Consumer<First> behind = consumer(avro(First.class), topic, "old")) {
      old.send(first("a", 1));
      Second second = new Second();
      second.name = "b";
      second.color = "red";
      young.send(second);
      Message<Second> one = typed(reader);
      Message<Second> two = typed(reader);
      assertEquals("a", one.getValue().name);
      assertEquals(null, one.getValue().color);
      assertEquals("red", two.getValue().color);
      assertNotEquals(List.of(one.getSchemaVersion()), List.of(two.getSchemaVersion()));
      assertEquals(List.of("a", "b"), List.of(typed(behind).getValue().name, typed(behind).getValue().name));
    }
  }

  /** GET_OR_CREATE_SCHEMA. */
  @Test
  void aMessageMayBringASchemaOfItsOwnAndFailsAloneWhenThatDoesNotFit() throws Exception {
    String topic = newTopic();
    try (Producer<First> producer = client.newProducer(avro(First.class)).topic(topic).create();
        Consumer<Second> consumer = consumer(avro(Second.class), topic, "s")) {
      Second second = new Second();
      second.name = "b";
      second.color = "red";
      producer.newMessage(avro(Second.class)).value(second).send();
      assertThrows(PulsarClientException.IncompatibleSchemaException.class,
          () -> producer.newMessage(avro(Other.class)).value(new Other()).send());
      producer.send(first("c", 3));
      assertEquals("red", typed(consumer).getValue().color);
      assertEquals("c", typed(consumer).getValue().name);
    }
  }

  @Test
  void whatDoesNotFitIsRefusedAsTheClientsOwnKindOfError() throws Exception {
    String topic = newTopic();
    try (Producer<First> producer = client.newProducer(avro(First.class)).topic(topic).create()) {
      producer.send(first("a", 1));
      assertThrows(PulsarClientException.IncompatibleSchemaException.class,
          () -> client.newProducer(avro(Other.class)).topic(topic).create());
      assertThrows(PulsarClientException.IncompatibleSchemaException.class,
          () -> client.newProducer(Schema.STRING).topic(topic).create());
      assertThrows(PulsarClientException.IncompatibleSchemaException.class, () -> consumer(avro(Other.class), topic, "s"));
      producer.send(first("b", 2));
    }
  }

  /** One whose definition means something to clients alone (PIP-420). */
  private record Elsewhere(String definition) implements Schema<byte[]> {
    @Override
    public byte[] encode(byte[] message) {
      return message;
    }

    @Override
    public byte[] decode(byte[] data) {
      return data;
    }

    @Override
    public SchemaInfo getSchemaInfo() {
      return SchemaInfo.builder().name("").type(SchemaType.EXTERNAL).schema(definition.getBytes()).properties(Map.of()).build();
    }

    @Override
    public Schema<byte[]> clone() {
      return this;
    }
  }

  @Test
  void whatTheBrokerCannotReadIsKeptForThoseWhoCan() throws Exception {
    String topic = newTopic();
    try (Producer<byte[]> one = client.newProducer(new Elsewhere("one")).topic(topic).create();
        Producer<byte[]> two = client.newProducer(new Elsewhere("two")).topic(topic).create();
        Consumer<byte[]> consumer = consumer(new Elsewhere("one"), topic, "s")) {
      one.send("a".getBytes());
      two.send("b".getBytes());
      Message<byte[]> first = typed(consumer);
      assertArrayEquals(new byte[] {0, 0, 0, 0, 0, 0, 0, 0}, first.getSchemaVersion());
      assertArrayEquals(new byte[] {0, 0, 0, 0, 0, 0, 0, 1}, typed(consumer).getSchemaVersion());
      assertThrows(PulsarClientException.IncompatibleSchemaException.class,
          () -> client.newProducer(avro(First.class)).topic(topic).create());
    }
  }

  @Test
  void primitivesHaveSchemasToo() throws Exception {
    String topic = newTopic();
    try (Producer<Long> producer = client.newProducer(Schema.INT64).topic(topic).create();
        Consumer<Long> consumer = consumer(Schema.INT64, topic, "s");
        Consumer<GenericRecord> any = consumer(Schema.AUTO_CONSUME(), topic, "any")) {
      producer.send(1L << 40);
      assertEquals(1L << 40, typed(consumer).getValue());
      assertEquals(1L << 40, typed(any).getValue().getNativeObject());
      assertThrows(PulsarClientException.IncompatibleSchemaException.class,
          () -> client.newProducer(Schema.BOOL).topic(topic).create());
    }
  }

  @ParameterizedTest
  @EnumSource(KeyValueEncodingType.class)
  void pairsComeAsOneValueOrWithTheirKeyApart(KeyValueEncodingType encoding) throws Exception {
    String topic = newTopic();
    Schema<KeyValue<String, First>> schema = Schema.KeyValue(Schema.STRING, avro(First.class), encoding);
    try (Producer<KeyValue<String, First>> producer = client.newProducer(schema).topic(topic).create();
        Consumer<KeyValue<String, First>> consumer = consumer(schema, topic, "s");
        Consumer<GenericRecord> any = consumer(Schema.AUTO_CONSUME(), topic, "any")) {
      producer.send(new KeyValue<>("k", first("a", 1)));
      Message<KeyValue<String, First>> message = typed(consumer);
      assertEquals("k", message.getValue().getKey());
      assertEquals("a", message.getValue().getValue().name);
      if (encoding == KeyValueEncodingType.SEPARATED) {
        assertArrayEquals("k".getBytes(), message.getKeyBytes());
      }
      KeyValue<?, ?> pair = (KeyValue<?, ?>) typed(any).getValue().getNativeObject();
      assertEquals("a", ((GenericRecord) pair.getValue()).getField("name"));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void messagesOfProtobufAreReadWithTheirSchemaAndOthersAreRefused(boolean isNative) throws Exception {
    String topic = newTopic();
    Schema<Timestamp> schema = isNative ? Schema.PROTOBUF_NATIVE(Timestamp.class) : Schema.PROTOBUF(Timestamp.class);
    Timestamp value = Timestamp.newBuilder().setSeconds(7).setNanos(5).build();
    try (Producer<Timestamp> producer = client.newProducer(schema).topic(topic).create();
        Producer<byte[]> raw = client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(topic).create();
        Consumer<Timestamp> consumer = consumer(schema, topic, "s")) {
      producer.send(value);
      raw.send(schema.encode(value));
      assertEquals(value, typed(consumer).getValue());
      assertEquals(value, typed(consumer).getValue());
      if (isNative) {  // the others are compared by the rules of Avro, for which these two are of one kind
        try (Consumer<GenericRecord> any = consumer(Schema.AUTO_CONSUME(), topic, "any")) {
          assertEquals(7L, typed(any).getValue().getField("seconds"));
        }
        Schema<StringValue> other = Schema.PROTOBUF_NATIVE(StringValue.class);
        assertThrows(PulsarClientException.IncompatibleSchemaException.class, () -> client.newProducer(other).topic(topic).create());
        assertThrows(PulsarClientException.IncompatibleSchemaException.class, () -> consumer(other, topic, "other"));
      }
      assertThrows(PulsarClientException.IncompatibleSchemaException.class,
          () -> client.newProducer(avro(First.class)).topic(topic).create());
      producer.send(value);
    }
  }

  @Test
  void whoBringsNoSchemaIsRefusedWhereTheNamespaceSaysSo() throws Exception {
    String namespace = "public/enforced-" + UUID.randomUUID();
    put("namespaces/" + namespace, "{}");
    post("namespaces/" + namespace + "/schemaValidationEnforced", "true");
    String topic = "persistent://" + namespace + "/t";
    client.newProducer().topic(topic).create().close(); // it has none yet
    Schema<First> schema = avro(First.class);
    try (Producer<First> producer = client.newProducer(schema).topic(topic).create();
        Consumer<byte[]> raw = client.newConsumer().topic(topic).subscriptionName("raw").subscribe()) {
      assertThrows(PulsarClientException.IncompatibleSchemaException.class, () -> client.newProducer().topic(topic).create());
      try (Producer<byte[]> auto = client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(topic).create()) {
        auto.send(schema.encode(first("a", 1)));
      }
      producer.send(first("a", 1));
      assertArrayEquals(schema.encode(first("a", 1)), next(raw).getData());
      assertArrayEquals(schema.encode(first("a", 1)), next(raw).getData());
    }
  }

  /** A field more, which need not be there. */
  private static final String MORE_DEFAULT = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},"
      + "{\"name\":\"b\",\"type\":\"int\",\"default\":1}]}";
  private static final String ONE = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}";
  private static final String MORE = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},"
      + "{\"name\":\"b\",\"type\":\"int\"}]}";
  private static final String NONE = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}";

  private static boolean isTaken(String topic, String definition) throws Exception {
    try {
      client.newProducer(Schema.AVRO(SchemaDefinition.builder().withJsonDef(definition).build())).topic(topic).create().close();
      return true;
    } catch (PulsarClientException.IncompatibleSchemaException refused) {
      return false;
    }
  }

  /** After each strategy: whether a field may be added with a default, added without, be taken away; and, after a field with a
   * default came, whether one without a default may stand in its place (which does not fit the first version). */
  @ParameterizedTest
  @CsvSource({
    "ALWAYS_COMPATIBLE,    true,  true,  true,  true",
    "ALWAYS_INCOMPATIBLE,  false, false, false, false",
    "BACKWARD,             true,  false, true,  true",
    "FORWARD,              true,  true,  false, true",
    "FULL,                 true,  false, false, true",
    "BACKWARD_TRANSITIVE,  true,  false, true,  false",
    "FORWARD_TRANSITIVE,   true,  true,  false, true",
    "FULL_TRANSITIVE,      true,  false, false, false",
  })
  void whatMayFollowIsAsTheTopicsStrategySays(String strategy, boolean added, boolean addedBare, boolean takenAway, boolean later) throws Exception {
    List<Boolean> found = new ArrayList<>();
    for (List<String> versions : List.of(List.of(ONE, MORE_DEFAULT), List.of(ONE, MORE), List.of(ONE, NONE), List.of(ONE, MORE_DEFAULT, MORE))) {
      String topic = newTopic();
      client.newProducer().topic(topic).create().close();
      put(topic.replace("://", "/") + "/schemaCompatibilityStrategy", '"' + strategy + '"');
      boolean isTaken = false;
      for (String definition : versions) {
        isTaken = isTaken(topic, definition);
      }
      found.add(isTaken);
    }
    assertEquals(List.of(added, addedBare, takenAway, later), found);
  }
}
