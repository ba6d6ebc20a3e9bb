package interpulse;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerEventListener;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.api.HashingScheme;
import org.apache.pulsar.client.api.KeySharedPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class PublishAndConsumeTest extends Fixture {

  @ParameterizedTest
  @CsvSource({"Exclusive,true", "Exclusive,false", "Shared,true", "Shared,false",
      "Failover,true", "Failover,false", "Key_Shared,true", "Key_Shared,false"})
  void everyTypeReceivesInOrder(SubscriptionType type, boolean batching) throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type).subscribe()) {
      publish(client.newProducer().topic(topic).enableBatching(batching), 0, 200);
      assertEquals(names(0, 200), receive(consumer, 200));
      assertNothingComes(consumer);
    }
  }

  @ParameterizedTest
  @EnumSource(CompressionType.class)
  void compressedMessagesComeBack(CompressionType compression) throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe()) {
      publish(client.newProducer().topic(topic).compressionType(compression), 0, 50);
      assertEquals(names(0, 50), receive(consumer, 50));
    }
  }

  @Test
  void aLargeMessageIsChunked() throws Exception {
    String topic = newTopic();
    byte[] payload = new byte[12 << 20];
    new java.util.Random(1).nextBytes(payload);
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).enableChunking(true).create()) {
      producer.send(payload);
      Message<byte[]> message = next(consumer);
      assertArrayEquals(payload, message.getData());
      consumer.acknowledge(message);
      assertNothingComes(consumer);
    }
  }

  @Test
  void anOversizeMessageIsRefused() throws Exception {
    try (Producer<byte[]> producer = client.newProducer().topic(newTopic()).enableBatching(false).create()) {
      assertThrows(PulsarClientException.InvalidMessageException.class, () -> producer.send(new byte[6 << 20]));
      producer.send(new byte[4 << 20]);
    }
  }

  @Test
  void encryptedMessagesAreOpenedByTheKeyHolder() throws Exception {
    String topic = newTopic();
    CryptoKeyReader keys = newKeys();
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").cryptoKeyReader(keys).subscribe()) {
      publish(client.newProducer().topic(topic).cryptoKeyReader(keys).addEncryptionKey("k"), 0, 10);
      assertEquals(names(0, 10), receive(consumer, 10));
    }
  }

  private static CryptoKeyReader newKeys() throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
    generator.initialize(2048);
    KeyPair pair = generator.generateKeyPair();
    byte[] open = pem("PUBLIC KEY", pair.getPublic().getEncoded());
    byte[] secret = pem("PRIVATE KEY", pair.getPrivate().getEncoded());
    return new CryptoKeyReader() {
      @Override
      public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
        return new EncryptionKeyInfo(open, metadata);
      }

      @Override
      public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
        return new EncryptionKeyInfo(secret, metadata);
      }
    };
  }

  private static byte[] pem(String kind, byte[] der) {
    String body = Base64.getMimeEncoder(64, "\n".getBytes()).encodeToString(der);
    return ("-----BEGIN " + kind + "-----\n" + body + "\n-----END " + kind + "-----\n").getBytes();
  }

  @Test
  void keysOfAPartitionedTopicStayInTheirPartition() throws Exception {
    String topic = newTopic();
    createPartitioned(topic, 4);
    assertEquals(4, client.getPartitionsForTopic(topic).get().size());
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
        Producer<byte[]> producer = client.newProducer().topic(topic).hashingScheme(HashingScheme.Murmur3_32Hash).create()) {
      for (int i = 0; i < 60; i++) {
        producer.newMessage().key("k" + i % 10).value(new byte[] {(byte) i}).send();
      }
      Map<String, Set<String>> partitions = new HashMap<>();
      for (int i = 0; i < 60; i++) {
        Message<byte[]> message = next(consumer);
        partitions.computeIfAbsent(message.getKey(), key -> new HashSet<>()).add(message.getTopicName());
        consumer.acknowledge(message);
      }
      assertTrue(partitions.values().stream().allMatch(one -> one.size() == 1), partitions::toString);
    }
  }

  @Test
  void aRegexSubscriptionHearsOfNewTopics() throws Exception {
    String topic = newTopic();
    publish(topic + "-a", 0, 2);
    try (Consumer<byte[]> consumer = client.newConsumer().topicsPattern(Pattern.compile(topic + "-.*")).subscriptionName("s")
        .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS)
        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
      assertEquals(names(0, 2), receive(consumer, 2));
      publish(topic + "x", 2, 2);
      publish(topic + "-b", 4, 2);
      assertEquals(names(4, 2), receive(consumer, 2));
      assertNothingComes(consumer);
    }
  }

  @Test
  void keySharedConsumersEachHaveTheirKeysInOrder() throws Exception {
    String topic = newTopic();
    List<Consumer<byte[]>> consumers = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      consumers.add(client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Key_Shared).subscribe());
    }
    publishKeys(topic, 300, 20);
    Map<String, Integer> owner = new HashMap<>();
    Map<String, Integer> last = new HashMap<>();
    int count = 0;
    for (int i = 0; i < 3; i++) {
      for (Message<byte[]> m; (m = consumers.get(i).receive(500, TimeUnit.MILLISECONDS)) != null; count++) {
        int index = Integer.parseInt(text(m));
        Integer before = owner.put(m.getKey(), i);
        assertTrue(before == null || before == i, m.getKey());
        assertTrue(last.getOrDefault(m.getKey(), -1) < index, m.getKey());
        last.put(m.getKey(), index);
        consumers.get(i).acknowledge(m);
      }
    }
    assertEquals(300, count);
    for (Consumer<byte[]> consumer : consumers) {
      consumer.close();
    }
  }

  private static void publishKeys(String topic, int count, int keys) throws Exception {
    try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      for (int i = 0; i < count; i++) {
        producer.newMessage().key("k" + i % keys).value(Integer.toString(i).getBytes()).sendAsync();
      }
      producer.flush();
    }
  }

  @Test
  void stickyRangesMustNotOverlap() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> low = sticky(topic, Range.of(0, 32767)); Consumer<byte[]> high = sticky(topic, Range.of(32768, 65535))) {
      assertThrows(PulsarClientException.class, () -> sticky(topic, Range.of(100, 200)));
      publishKeys(topic, 100, 20);
      int count = 0;
      for (Consumer<byte[]> consumer : List.of(low, high)) {
        for (Message<byte[]> m; (m = consumer.receive(500, TimeUnit.MILLISECONDS)) != null; count++) {
          consumer.acknowledge(m);
        }
      }
      assertEquals(100, count);
    }
  }

  private static Consumer<byte[]> sticky(String topic, Range range) throws Exception {
    return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Key_Shared)
        .keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(range)).subscribe();
  }

  @Test
  void failoverTellsWhoIsActiveAndHandsOver() throws Exception {
    String topic = newTopic();
    TreeSet<String> active = new TreeSet<>();
    ConsumerEventListener listener = new ConsumerEventListener() {
      @Override
      public void becameActive(Consumer<?> consumer, int partition) {
        synchronized (active) {
          active.add(consumer.getConsumerName());
          active.notifyAll();
        }
      }

      @Override
      public void becameInactive(Consumer<?> consumer, int partition) {
        synchronized (active) {
          active.remove(consumer.getConsumerName());
        }
      }
    };
    Map<String, Consumer<byte[]>> consumers = new HashMap<>();
    for (String name : List.of("a", "b")) {
      consumers.put(name, client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Failover)
          .consumerName(name).consumerEventListener(listener).subscribe());
    }
    String first = waitForActive(active, Set.of());
    publish(topic, 0, 20);
    assertEquals(names(0, 10), receive(consumers.get(first), 10));
    consumers.remove(first).close();
    String second = waitForActive(active, Set.of(first));
    assertEquals(names(10, 10), receive(consumers.get(second), 10));
    consumers.get(second).close();
  }

  private static String waitForActive(TreeSet<String> active, Set<String> not) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
    synchronized (active) {
      active.removeAll(not);
      while (active.isEmpty()) {
        assertTrue(System.nanoTime() < deadline, "nobody became active");
        active.wait(100);
      }
      return active.first();
    }
  }

  @Test
  void accessModesAreKept() throws Exception {
    String topic = newTopic();
    Producer<byte[]> first = client.newProducer().topic(topic).accessMode(ProducerAccessMode.Exclusive).create();
    assertThrows(PulsarClientException.class, () -> client.newProducer().topic(topic).create());
    assertThrows(PulsarClientException.ProducerFencedException.class,
        () -> client.newProducer().topic(topic).accessMode(ProducerAccessMode.Exclusive).create());
    CompletableFuture<Producer<byte[]>> waiting =
        client.newProducer().topic(topic).accessMode(ProducerAccessMode.WaitForExclusive).sendTimeout(5, TimeUnit.SECONDS).createAsync();
    assertThrows(TimeoutException.class, () -> waiting.get(300, TimeUnit.MILLISECONDS));
    first.close();
    Producer<byte[]> second = waiting.get(WAIT_SECONDS, TimeUnit.SECONDS);
    second.send(new byte[1]);
    Producer<byte[]> third = client.newProducer().topic(topic).accessMode(ProducerAccessMode.ExclusiveWithFencing).create();
    third.send(new byte[1]);
    ExecutionException fenced = assertThrows(ExecutionException.class, () -> second.sendAsync(new byte[1]).get(WAIT_SECONDS, TimeUnit.SECONDS));
    assertTrue(fenced.getCause() instanceof PulsarClientException, () -> fenced.toString());
    third.close();
    second.closeAsync();
  }

  @Test
  void aSecondExclusiveConsumerIsRefusedAndAnotherClientSeesTheSameSubscription() throws Exception {
    String topic = newTopic();
    try (PulsarClient other = newClient(); Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe()) {
      assertThrows(PulsarClientException.ConsumerBusyException.class,
          () -> other.newConsumer().topic(topic).subscriptionName("s").subscribe());
      assertThrows(PulsarClientException.ConsumerBusyException.class,
          () -> other.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Shared).subscribe());
      assertFalse(consumer.hasReachedEndOfTopic());
    }
  }
}
