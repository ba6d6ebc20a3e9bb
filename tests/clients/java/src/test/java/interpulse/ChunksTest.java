package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.TypedMessageBuilderImpl;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Messages in chunks: among several consumers, incomplete, refused. */
class ChunksTest extends Fixture {
  private static final int CHUNK_BYTES = 500;

  private static ConsumerBuilder<byte[]> of(String topic, SubscriptionType type) {
    return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
  }

  private static Producer<byte[]> chunking(String topic) throws Exception {
    return client.newProducer().topic(topic).enableBatching(false).enableChunking(true).chunkMaxMessageSize(CHUNK_BYTES).create();
  }

  /** Its name, and as much behind it as makes it several chunks. */
  private static byte[] large(String name) {
    return String.format("%-2000s", name).getBytes();
  }

  /** One chunk by itself, of ten bytes. */
  private static void sendChunk(Producer<byte[]> producer, String key, String uuid, int index, int count) throws Exception {
    TypedMessageBuilderImpl<byte[]> message = (TypedMessageBuilderImpl<byte[]>) producer.newMessage().key(key).value(new byte[10]);
    message.getMetadataBuilder().setUuid(uuid).setChunkId(index).setNumChunksFromMsg(count).setTotalChunkMsgSize(10 * count);
    message.send();
  }

  private static String stats(String topic) throws Exception {
    URI uri = URI.create(System.getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + topic.replace("://", "/") + "/stats");
    return HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body();
  }

  private static int backlog(String topic) throws Exception {
    String stats = stats(topic);
    Matcher found = Pattern.compile("\"msgBacklog\":(\\d+)").matcher(stats);
    assertTrue(found.find(), stats);
    return Integer.parseInt(found.group(1));
  }

  private static void untilAllIsAcknowledged(String topic) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
    while (backlog(topic) > 0) {
      assertTrue(System.nanoTime() < deadline, () -> "something is left");
      Thread.sleep(50);
    }
  }

  @ParameterizedTest
  @EnumSource(value = SubscriptionType.class, names = {"Shared", "Key_Shared"})
  void eachMessageComesWholeToOneOfSeveralConsumers(SubscriptionType type) throws Exception {
    String topic = newTopic();
    List<Consumer<byte[]>> consumers = new ArrayList<>();
    List<Producer<byte[]>> producers = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      consumers.add(of(topic, type).receiverQueueSize(4).subscribe());
      producers.add(chunking(topic));
    }
    List<CompletableFuture<?>> sent = new ArrayList<>();
    for (int i = 0; i < 60; i++) { // chunks of three producers lie between each other
      sent.add(producers.get(i % 3).newMessage().key("k" + i % 7).value(large("m" + i)).sendAsync());
    }
    CompletableFuture.allOf(sent.toArray(CompletableFuture[]::new)).get(WAIT_SECONDS, TimeUnit.SECONDS);
    TreeSet<String> got = new TreeSet<>();
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
    for (int i = 0; got.size() < 60; i++) {
      assertTrue(System.nanoTime() < deadline, () -> "only " + got);
      Message<byte[]> message = consumers.get(i % 3).receive(50, TimeUnit.MILLISECONDS);
      if (message != null) {
        assertEquals(2000, message.getData().length);
        assertTrue(got.add(text(message).trim()), "twice");
        consumers.get(i % 3).acknowledge(message);
      }
    }
    assertEquals(new TreeSet<>(names(0, 60)), got);
    untilAllIsAcknowledged(topic);
    for (int i = 0; i < 3; i++) {
      consumers.get(i).close();
      producers.get(i).close();
    }
  }

  /** Some of the keys are to move to the second one, who could do nothing with the rest of a message. */
  @Test
  void whoHasBegunMessagesOfKeySharedGetsTheRestAlsoWhenAnotherJoins() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> first = of(topic, SubscriptionType.Key_Shared).maxPendingChunkedMessage(100).subscribe();
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      for (int i = 0; i < 20; i++) {
        sendChunk(producer, "k" + i, "u" + i, 0, 2);
      }
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
      while (!stats(topic).contains("\"unackedMessages\":20")) {
        assertTrue(System.nanoTime() < deadline, () -> "the first chunks did not come");
        Thread.sleep(20);
      }
      try (Consumer<byte[]> second = of(topic, SubscriptionType.Key_Shared).subscribe()) {
        for (int i = 0; i < 20; i++) {
          sendChunk(producer, "k" + i, "u" + i, 1, 2);
        }
        for (int i = 0; i < 20; i++) {
          Message<byte[]> message = next(first);
          assertEquals(20, message.getData().length);
          first.acknowledge(message);
        }
        untilAllIsAcknowledged(topic);
        assertNothingComes(second);
      }
    }
  }

  /** F22 (apache/pulsar#26395): what a producer that died has left of its message goes in its time, and holds nobody up. */
  @ParameterizedTest
  @EnumSource(SubscriptionType.class)
  void chunksOfAMessageThatNeverBecomesWholeExpireAndNothingWaitsBehindThem(SubscriptionType type) throws Exception {
    String topic = newTopic();
    of(topic, type).subscribe().close();
    try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      for (int[] chunk : new int[][] {{0, 3}, {1, 3}, {1, 2}}) { // two of three; and the last of another, without its first
        sendChunk(producer, "k", "u" + chunk[1], chunk[0], chunk[1]);
      }
      producer.newMessage().key("k").value("m0".getBytes()).send();
    }
    try (Consumer<byte[]> consumer = of(topic, type).receiverQueueSize(2)
        .expireTimeOfIncompleteChunkedMessage(1, TimeUnit.SECONDS).ackTimeout(2, TimeUnit.SECONDS).subscribe()) {
      assertEquals(names(0, 1), receive(consumer, 1));
      untilAllIsAcknowledged(topic);
      assertNothingComes(consumer);
    }
  }

  /** F23 (apache/pulsar#21101, #25220). */
  @Test
  void aRefusedMessageComesWholeAgainAndLeavesNoHole() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = of(topic, SubscriptionType.Shared).negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS).subscribe();
        Producer<byte[]> producer = chunking(topic)) {
      producer.send(large("m0"));
      producer.send(large("m1"));
      consumer.negativeAcknowledge(next(consumer));
      TreeSet<String> got = new TreeSet<>();
      for (int i = 0; i < 2; i++) {
        Message<byte[]> message = next(consumer);
        assertEquals(2000, message.getData().length);
        got.add(text(message).trim());
        consumer.acknowledge(message);
      }
      assertEquals(new TreeSet<>(names(0, 2)), got);
      untilAllIsAcknowledged(topic);
    }
  }
}
