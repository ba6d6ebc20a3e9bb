package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AcknowledgeAndSeekTest extends Fixture {

  private static List<String> readAll(String topic, MessageId from, boolean inclusive) throws Exception {
    var builder = client.newReader().topic(topic).startMessageId(from);
    List<String> got = new ArrayList<>();
    try (Reader<byte[]> reader = (inclusive ? builder.startMessageIdInclusive() : builder).create()) {
      while (reader.hasMessageAvailable()) {
        got.add(text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)));
      }
    }
    return got;
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aReaderStartsWhereToldAndKnowsTheEnd(boolean batching) throws Exception {
    String topic = newTopic();
    List<MessageId> ids = publish(client.newProducer().topic(topic).enableBatching(batching), 0, 20);
    assertEquals(names(0, 20), readAll(topic, MessageId.earliest, false));
    assertEquals(names(10, 10), readAll(topic, ids.get(9), false));
    assertEquals(names(9, 11), readAll(topic, ids.get(9), true));
    assertEquals(List.of(), readAll(topic, MessageId.latest, false));
  }

  @Test
  void aReaderReadsBackByTime() throws Exception {
    String topic = newTopic();
    publish(topic, 0, 10);
    try (Reader<byte[]> reader = client.newReader().topic(topic).startMessageFromRollbackDuration(1, TimeUnit.HOURS).create()) {
      for (String name : names(0, 10)) {
        assertEquals(name, text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)));
      }
      assertFalse(reader.hasMessageAvailable());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void seekGoesToAMessageAndToATime(boolean batching) throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").startMessageIdInclusive().subscribe()) {
      List<MessageId> ids = publish(client.newProducer().topic(topic).enableBatching(batching), 0, 20);
      assertEquals(names(0, 20), receive(consumer, 20));
      consumer.seek(System.currentTimeMillis() - 3_600_000);
      assertEquals(names(0, 20), receive(consumer, 20));
      consumer.seek(MessageId.earliest);
      assertEquals(names(0, 20), receive(consumer, 20));
      consumer.seek(ids.get(12));
      assertEquals(names(12, 8), receive(consumer, 8));
      consumer.seek(MessageId.latest);
      assertNothingComes(consumer);
    }
  }

  @Test
  void negativeAcksComeAgainWithTheirCount() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = shared(topic).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe()) {
      publish(topic, 0, 10);
      for (int i = 0; i < 10; i++) {
        Message<byte[]> message = next(consumer);
        if (i % 2 == 0) {
          consumer.negativeAcknowledge(message);
        } else {
          consumer.acknowledge(message);
        }
      }
      TreeSet<String> again = new TreeSet<>();
      for (int i = 0; i < 5; i++) {
        Message<byte[]> message = next(consumer);
        assertEquals(1, message.getRedeliveryCount());
        again.add(text(message));
        consumer.acknowledge(message);
      }
      assertEquals(new TreeSet<>(List.of("m0", "m2", "m4", "m6", "m8")), again);
      assertNothingComes(consumer);
    }
  }

  private static ConsumerBuilder<byte[]> shared(String topic) {
    return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Shared);
  }

  @Test
  void anAckTimeoutBringsMessagesBack() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = shared(topic).ackTimeout(1, TimeUnit.SECONDS).subscribe()) {
      publish(topic, 0, 3);
      for (int i = 0; i < 3; i++) {
        next(consumer);
      }
      assertEquals(new TreeSet<>(names(0, 3)), new TreeSet<>(receive(consumer, 3)));
    }
  }

  @Test
  void redeliverOnAnExclusiveSubscriptionStartsOverAtTheFirstUnacknowledged() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe()) {
      publish(topic, 0, 20);
      assertEquals(names(0, 5), receive(consumer, 5));
      for (int i = 0; i < 10; i++) {
        next(consumer);
      }
      consumer.redeliverUnacknowledgedMessages();
      assertEquals(names(5, 15), receive(consumer, 15));
      assertNothingComes(consumer);
    }
  }

  @Test
  void refusedMessagesReachTheDeadLetterTopicOnce() throws Exception {
    String topic = newTopic();
    DeadLetterPolicy policy = DeadLetterPolicy.builder().maxRedeliverCount(2).deadLetterTopic(topic + "-dlq").build();
    try (Consumer<byte[]> dead = client.newConsumer().topic(topic + "-dlq").subscriptionName("d").subscribe();
        Consumer<byte[]> consumer = shared(topic).deadLetterPolicy(policy).negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS).subscribe()) {
      publish(topic, 0, 3);
      for (int i = 0; i < 9; i++) {
        consumer.negativeAcknowledge(next(consumer));
      }
      assertEquals(new TreeSet<>(names(0, 3)), new TreeSet<>(receive(dead, 3)));
      assertNothingComes(dead);
      assertNothingComes(consumer);
    }
  }

  @Test
  void aRetryLetterComesBackLater() throws Exception {
    String topic = newTopic();
    DeadLetterPolicy policy = DeadLetterPolicy.builder().maxRedeliverCount(2).retryLetterTopic(topic + "-retry").deadLetterTopic(topic + "-dlq").build();
    try (Consumer<byte[]> consumer = shared(topic).enableRetry(true).deadLetterPolicy(policy).subscribe()) {
      publish(topic, 0, 1);
      consumer.reconsumeLater(next(consumer), 100, TimeUnit.MILLISECONDS);
      Message<byte[]> again = next(consumer);
      assertEquals("m0", text(again));
      assertTrue(again.getTopicName().endsWith("-retry"));
      consumer.acknowledge(again);
    }
  }

  @Test
  void batchIndexAcksAreKeptOverAReconnect() throws Exception {
    String topic = newTopic();
    ConsumerBuilder<byte[]> builder = shared(topic).enableBatchIndexAcknowledgment(true).isAckReceiptEnabled(true);
    try (Consumer<byte[]> consumer = builder.subscribe()) {
      publish(client.newProducer().topic(topic).batchingMaxPublishDelay(1, TimeUnit.SECONDS), 0, 10);
      for (int i = 0; i < 10; i++) {
        Message<byte[]> message = next(consumer);
        if (i % 2 == 1) {
          consumer.acknowledge(message);
        }
      }
    }
    try (Consumer<byte[]> consumer = builder.subscribe()) {
      assertEquals(List.of("m0", "m2", "m4", "m6", "m8"), receive(consumer, 5));
      assertNothingComes(consumer);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aCumulativeAckCoversAllBefore(boolean batching) throws Exception {
    String topic = newTopic();
    ConsumerBuilder<byte[]> builder = client.newConsumer().topic(topic).subscriptionName("s").isAckReceiptEnabled(true)
        .enableBatchIndexAcknowledgment(true);
    try (Consumer<byte[]> consumer = builder.subscribe()) {
      publish(client.newProducer().topic(topic).enableBatching(batching), 0, 20);
      for (int i = 0; i < 20; i++) {
        Message<byte[]> message = next(consumer);
        if (i == 14) {
          consumer.acknowledgeCumulative(message);
        }
      }
    }
    try (Consumer<byte[]> consumer = builder.subscribe()) {
      assertEquals(names(15, 5), receive(consumer, 5));
    }
  }

  @Test
  void theLastMessageIdAndTheStatsAreTold() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe()) {
      List<MessageId> ids = publish(topic, 0, 5);
      assertEquals(0, consumer.getLastMessageIds().get(0).compareTo(ids.get(4)));
      consumer.unsubscribe();
    }
  }

  @Test
  void killMinusNineInMidTrafficLosesNothingAcknowledged() throws Exception {
    String pipe = System.getenv("RESTART_PIPE");
    assumeTrue(pipe != null, "the server is not ours to kill");
    String topic = newTopic();
    Set<String> confirmed = ConcurrentHashMap.newKeySet();
    try (Consumer<byte[]> consumer = shared(topic).subscribe();
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).blockIfQueueFull(true)
            .sendTimeout(0, TimeUnit.SECONDS).create()) {
      for (int round = 0; round < 3; round++) {
        List<CompletableFuture<?>> pending = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
          String name = round + "-" + i;
          pending.add(producer.sendAsync(name.getBytes()).thenAccept(id -> confirmed.add(name)));
        }
        if (round < 2) {
          restart(Path.of(pipe), Path.of(System.getenv("RESTART_DONE")));
        }
        CompletableFuture.allOf(pending.toArray(CompletableFuture[]::new)).get(60, TimeUnit.SECONDS);
      }
      assertEquals(1500, confirmed.size());
      Set<String> missing = new HashSet<>(confirmed);
      while (!missing.isEmpty()) {
        Message<byte[]> message = next(consumer);
        missing.remove(text(message));
        consumer.acknowledge(message);
      }
    }
  }
}
