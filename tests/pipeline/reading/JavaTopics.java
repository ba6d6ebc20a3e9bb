// Topics as programs in Java write them, and what a reader in Java gets of them: the other side of test_java_writer.py.
// Arguments: service URL, what the topics' names begin with. A line of JSON on stdout for each message, in the order of the topic.

import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.ConsumerCryptoFailureAction;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

public final class JavaTopics {
  private static final long EVENT_MS = 1_700_000_000_123L;
  private final PulsarClient client;
  private final String prefix;

  public enum Kind { SMALL, LARGE }

  public static class Place {
    public String city;
    public Integer zip;
  }

  public static class Order {
    public String name;
    public int number;
    public long big;
    public double amount;
    public float share;
    public boolean fine;
    public Integer perhaps;
    public Kind kind;
    public byte[] raw;
    public List<String> tags;
    public Map<String, String> notes;
    public Place place;
  }

  private JavaTopics(PulsarClient client, String prefix) {
    this.client = client;
    this.prefix = prefix;
  }

  public static void main(String[] arguments) throws Exception {
    try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).operationTimeout(60, TimeUnit.SECONDS).build()) {
      JavaTopics topics = new JavaTopics(client, arguments[1]);
      for (CompressionType codec : CompressionType.values()) {
        topics.bytes(codec);
      }
      topics.chunks();
      topics.encrypted();
      topics.typed("avro", Schema.AVRO(Order.class), JavaTopics::order, JavaTopics::told);
      topics.typed("json", Schema.JSON(Order.class), JavaTopics::order, JavaTopics::told);
      topics.typed("protobuf", Schema.PROTOBUF(com.google.protobuf.Timestamp.class), JavaTopics::time, JavaTopics::told);
      topics.typed("native", Schema.PROTOBUF_NATIVE(com.google.protobuf.Timestamp.class), JavaTopics::time, JavaTopics::told);
      topics.pairs("separated", Schema.KeyValue(Schema.AVRO(Place.class), Schema.AVRO(Order.class), KeyValueEncodingType.SEPARATED));
      topics.pairs("inline", Schema.KeyValue(Schema.AVRO(Place.class), Schema.JSON(Order.class), KeyValueEncodingType.INLINE));
    }
  }

  private <T> ProducerBuilder<T> producer(String name, Schema<T> schema) {
    return client.newProducer(schema).topic(prefix + name).producerName("java-" + name).blockIfQueueFull(true)
        .batchingMaxPublishDelay(1, TimeUnit.MINUTES);
  }

  /** Batches of ten, then some alone, of all that a message can have. */
  private void bytes(CompressionType codec) throws Exception {
    String name = "bytes-" + codec.name().toLowerCase();
    try (Producer<byte[]> producer = producer(name, Schema.BYTES).compressionType(codec).batchingMaxMessages(10).create()) {
      sendAll(producer, 0, 30);
    }
    try (Producer<byte[]> producer = producer(name, Schema.BYTES).compressionType(codec).enableBatching(false).create()) {
      sendAll(producer, 30, 5);
    }
    read(name, Schema.BYTES, value -> null);
  }

  private static void sendAll(Producer<byte[]> producer, int first, int count) throws Exception {
    for (int number = first; number < first + count; number++) {
      TypedMessageBuilder<byte[]> message = producer.newMessage().value(number % 7 == 6 ? null : ("value " + number).repeat(number + 1).getBytes());
      if (number % 3 == 1) {
        message.key("key " + number % 4).property("number", "" + number).property("empty", "");
      } else if (number % 3 == 2) {
        message.keyBytes(new byte[] {(byte) 0xff, (byte) number}).orderingKey(new byte[] {1}).eventTime(EVENT_MS + number);
      }
      message.sequenceId(1000 + 2L * number).sendAsync();
    }
    producer.flush();
  }

  private void chunks() throws Exception {
    try (Producer<byte[]> producer = producer("chunks", Schema.BYTES).compressionType(CompressionType.LZ4).enableBatching(false)
        .enableChunking(true).chunkMaxMessageSize(1000).create()) {
      Random chance = new Random(3);
      for (int size : new int[] {10, 5_000, 700, 30_000, 1}) {
        byte[] value = new byte[size];
        chance.nextBytes(value);
        producer.newMessage().key("of " + size).property("size", "" + size).value(value).send();
      }
    }
    read("chunks", Schema.BYTES, value -> null);
  }

  private void encrypted() throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
    generator.initialize(2048);
    KeyPair pair = generator.generateKeyPair();
    byte[] key = pem("PUBLIC KEY", pair.getPublic().getEncoded());
    CryptoKeyReader keys = new CryptoKeyReader() {
      @Override
      public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
        return new EncryptionKeyInfo(key, metadata);
      }

      @Override
      public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
        return new EncryptionKeyInfo(pem("PRIVATE KEY", pair.getPrivate().getEncoded()), metadata);
      }
    };
    try (Producer<byte[]> producer = producer("encrypted", Schema.BYTES).enableBatching(false).cryptoKeyReader(keys)
        .addEncryptionKey("mine").create()) {
      producer.newMessage().key("open").value("secret".getBytes()).send();
    }
    read("encrypted", Schema.BYTES, value -> null);
    among(keys);
  }

  /** A batch and a message alone, compressed and encrypted, between open ones; and in chunks, which a reader in Java without the
   * key dies of: they are longer than they say. */
  private void among(CryptoKeyReader keys) throws Exception {
    String name = "encrypted-among";
    try (Producer<byte[]> open = producer(name, Schema.BYTES).create();
        Producer<byte[]> batches = producer(name, Schema.BYTES).producerName("batches").compressionType(CompressionType.LZ4)
            .cryptoKeyReader(keys).addEncryptionKey("mine").create();
        Producer<byte[]> alone = producer(name, Schema.BYTES).producerName("alone").compressionType(CompressionType.ZSTD)
            .enableBatching(false).cryptoKeyReader(keys).addEncryptionKey("mine").create();
        Producer<byte[]> chunks = producer("encrypted-chunks", Schema.BYTES).enableBatching(false).enableChunking(true)
            .chunkMaxMessageSize(1000).cryptoKeyReader(keys).addEncryptionKey("mine").create()) {
      sendAll(open, 0, 3);
      sendAll(batches, 0, 3);
      sendAll(open, 3, 1);
      alone.newMessage().key("open").value("secret".repeat(50).getBytes()).send();
      chunks.newMessage().value(new byte[2500]).send();
      sendAll(open, 4, 3);
    }
    read(name, Schema.BYTES, value -> null);
  }

  private static byte[] pem(String what, byte[] der) {
    String text = Base64.getMimeEncoder(64, "\n".getBytes()).encodeToString(der);
    return ("-----BEGIN " + what + "-----\n" + text + "\n-----END " + what + "-----\n").getBytes(StandardCharsets.US_ASCII);
  }

  private interface Made<T> {
    T of(int number);
  }

  private interface Told<T> {
    String of(T value);
  }

  private <T> void typed(String name, Schema<T> schema, Made<T> made, Told<T> told) throws Exception {
    try (Producer<T> producer = producer(name, schema).batchingMaxMessages(4).create()) {
      for (int number = 0; number < 10; number++) {
        producer.newMessage().value(made.of(number)).sendAsync();
      }
      producer.flush();
    }
    read(name, schema, told);
  }

  private void pairs(String name, Schema<KeyValue<Place, Order>> schema) throws Exception {
    typed(name, schema, number -> new KeyValue<>(place(number), order(number)),
        pair -> "{\"key\":" + told(pair.getKey()) + ",\"value\":" + told(pair.getValue()) + "}");
  }

  // ---- What is written

  private static Place place(int number) {
    Place place = new Place();
    place.city = "city \u00e4" + number;
    place.zip = number % 2 == 0 ? number : null;
    return place;
  }

  private static Order order(int number) {
    Order order = new Order();
    order.name = number == 3 ? null : "n" + number;
    order.number = -number;
    order.big = 1L << 40 | number;
    order.amount = number / 8.0;
    order.share = number / 4f;
    order.fine = number % 2 == 1;
    order.perhaps = number % 3 == 0 ? null : number;
    order.kind = number % 2 == 0 ? Kind.SMALL : Kind.LARGE;
    order.raw = new byte[] {(byte) 0xfe, (byte) number, 0};
    order.tags = number == 4 ? null : List.of("a", "b" + number);
    order.notes = new TreeMap<>(Map.of("one", "1", "number", "" + number));
    order.place = number == 5 ? null : place(number);
    return order;
  }

  private static com.google.protobuf.Timestamp time(int number) {
    return com.google.protobuf.Timestamp.newBuilder().setSeconds(-number).setNanos(number == 2 ? 0 : number).build();
  }

  // ---- What is told, as JSON

  private <T> void read(String name, Schema<T> schema, Told<T> told) throws Exception {
    try (Reader<T> reader = client.newReader(schema).topic(prefix + name).startMessageId(MessageId.earliest)
        .cryptoFailureAction(ConsumerCryptoFailureAction.CONSUME).create()) {
      while (reader.hasMessageAvailable()) {
        tell(name, reader.readNext(60, TimeUnit.SECONDS), told);
      }
    }
  }

  private static <T> void tell(String name, Message<T> message, Told<T> told) {
    MessageIdAdv id = (MessageIdAdv) message.getMessageId();
    Map<String, String> fields = new LinkedHashMap<>();
    fields.put("of", text(name));
    fields.put("key", message.hasKey() ? bytes(message.getKeyBytes()) : "null");
    fields.put("bytes", bytes(message.getData()));
    T value = message.getValue();
    fields.put("is_null", value == null ? "true" : "false");
    fields.put("typed", value == null ? "null" : told.of(value));
    fields.put("properties", map(message.getProperties()));
    fields.put("event_ms", "" + message.getEventTime());
    fields.put("publish_ms", "" + message.getPublishTime());
    fields.put("sequence_id", "" + message.getSequenceId());
    fields.put("producer", text(message.getProducerName()));
    fields.put("index", message.getIndex().map(each -> "" + each).orElse("null"));
    fields.put("id", "[" + id.getLedgerId() + "," + id.getEntryId() + "," + id.getBatchIndex() + "]");
    System.out.println(object(fields));
  }

  private static String told(Order order) {
    if (order == null) {
      return "null";
    }
    Map<String, String> fields = new LinkedHashMap<>();
    fields.put("name", text(order.name));
    fields.put("number", "" + order.number);
    fields.put("big", "" + order.big);
    fields.put("amount", "" + order.amount);
    fields.put("share", "" + order.share);
    fields.put("fine", "" + order.fine);
    fields.put("perhaps", "" + order.perhaps);
    fields.put("kind", text(order.kind.name()));
    fields.put("raw", bytes(order.raw));
    fields.put("tags", order.tags == null ? "null" : list(order.tags));
    fields.put("notes", map(order.notes));
    fields.put("place", told(order.place));
    return object(fields);
  }

  private static String told(Place place) {
    return place == null ? "null" : object(Map.of("city", text(place.city), "zip", "" + place.zip));
  }

  private static String told(com.google.protobuf.Timestamp time) {
    return object(Map.of("seconds", "" + time.getSeconds(), "nanos", "" + time.getNanos()));
  }

  private static String object(Map<String, String> fields) {
    List<String> members = new ArrayList<>();
    fields.forEach((name, value) -> members.add(text(name) + ":" + value));
    return "{" + String.join(",", members) + "}";
  }

  private static String map(Map<String, String> values) {
    Map<String, String> fields = new TreeMap<>();
    values.forEach((name, value) -> fields.put(name, text(value)));
    return object(fields);
  }

  private static String list(List<String> values) {
    return "[" + String.join(",", values.stream().map(JavaTopics::text).toList()) + "]";
  }

  private static String bytes(byte[] value) {
    return value == null ? "null" : text(Base64.getEncoder().encodeToString(value));
  }

  /** Nothing in here needs to be escaped but what is not ASCII. */
  private static String text(String value) {
    if (value == null) {
      return "null";
    }
    StringBuilder found = new StringBuilder("\"");
    for (char each : value.toCharArray()) {
      found.append(each < 128 ? "" + each : String.format("\\u%04x", (int) each));
    }
    return found.append('"').toString();
  }
}
