package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class DelayAndDeduplicationTest extends Fixture {
  private static final int TICK_MS = 1000;

  private static Consumer<byte[]> subscribed(String topic, SubscriptionType type) throws Exception {
    return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
  }

  private static void setDeduplication(String topic) throws Exception {
    post(topic.replace("://", "/") + "/deduplicationEnabled", "true");
  }

  @ParameterizedTest
  @EnumSource(value = SubscriptionType.class, names = {"Shared", "Key_Shared"})
  void whatIsDelayedComesInItsTimeAndNothingWaitsBehindIt(SubscriptionType type) throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = subscribed(topic, type);
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      long dueAt = System.currentTimeMillis() + 8000;
      producer.newMessage().key("a").value("at".getBytes()).deliverAt(dueAt).send();
      producer.newMessage().key("b").value("after".getBytes()).deliverAfter(dueAt - System.currentTimeMillis(), TimeUnit.MILLISECONDS).send();
      producer.newMessage().key("a").value("long past".getBytes()).deliverAt(1).send();
      producer.newMessage().key("c").value("now".getBytes()).send();
      assertEquals(List.of("long past", "now"), receive(consumer, 2));
      assertEquals(new TreeSet<>(List.of("at", "after")), new TreeSet<>(receive(consumer, 2)));
      assertTrue(System.currentTimeMillis() >= dueAt - TICK_MS, "early");
      assertNothingComes(consumer);
    }
  }

  @Test
  void delayedMessagesOutliveAKillAndWhatIsAcknowledgedDoesNotComeAgain() throws Exception {
    String pipe = System.getenv("RESTART_PIPE");
    assumeTrue(pipe != null, "the server is not ours to kill");
    String topic = newTopic();
    long dueAt = System.currentTimeMillis() + 20_000;
    try (Consumer<byte[]> consumer = subscribed(topic, SubscriptionType.Shared);
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      for (String name : names(0, 10)) {
        producer.newMessage().value(name.getBytes()).deliverAt(dueAt).send();
      }
      publish(topic, 100, 10);
      List<CompletableFuture<Void>> stored = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        stored.add(consumer.acknowledgeAsync(next(consumer)));
      }
      CompletableFuture.allOf(stored.toArray(CompletableFuture[]::new)).get(WAIT_SECONDS, TimeUnit.SECONDS);
      Thread.sleep(2000); // a mark is stored at most once a second
      restart(Path.of(pipe), Path.of(System.getenv("RESTART_DONE")));
      assertEquals(new TreeSet<>(names(0, 10)), new TreeSet<>(receive(consumer, 10)));
      assertTrue(System.currentTimeMillis() >= dueAt - TICK_MS, "early");
      assertNothingComes(consumer);
    }
  }

  @Test
  void aDelayBeyondTheLongestOneIsRefusedAndNothingElseIs() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = subscribed(topic, SubscriptionType.Shared);
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      post(topic.replace("://", "/") + "/delayedDelivery", "{\"active\": true, \"tickTime\": 1000, \"maxDeliveryDelayInMillis\": 5000}");
      assertThrows(PulsarClientException.NotAllowedException.class,
          () -> producer.newMessage().value("too late".getBytes()).deliverAfter(1, TimeUnit.HOURS).send());
      producer.newMessage().value("soon".getBytes()).deliverAfter(100, TimeUnit.MILLISECONDS).send();
      assertEquals(List.of("soon"), receive(consumer, 1));
      assertNothingComes(consumer);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatIsSentAgainIsStoredOnceAlsoOverAKill(boolean isKilled) throws Exception {
    String pipe = System.getenv("RESTART_PIPE");
    assumeTrue(!isKilled || pipe != null, "the server is not ours to kill");
    String topic = newTopic();
    subscribed(topic, SubscriptionType.Exclusive).close();
    setDeduplication(topic);
    try (Producer<byte[]> producer = client.newProducer().topic(topic).producerName("p").initialSequenceId(41).enableBatching(false).create()) {
      for (String name : names(0, 20)) {
        producer.send(name.getBytes());
      }
      assertEquals(61, producer.getLastSequenceId());
    }
    if (isKilled) {
      restart(Path.of(pipe), Path.of(System.getenv("RESTART_DONE")));
    }
    try (Producer<byte[]> producer = client.newProducer().topic(topic).producerName("p").enableBatching(false).create()) {
      assertEquals(61, producer.getLastSequenceId());
      List<CompletableFuture<?>> storm = new ArrayList<>();
      for (int i = 0; i < 60; i++) {
        long number = 42 + i % 30; // the last ten are new, once
        storm.add(producer.newMessage().sequenceId(number).value(("m" + (number - 42)).getBytes()).sendAsync());
      }
      CompletableFuture.allOf(storm.toArray(CompletableFuture[]::new)).get(WAIT_SECONDS, TimeUnit.SECONDS);
    }
    try (Consumer<byte[]> consumer = subscribed(topic, SubscriptionType.Exclusive)) { // what is in its queue over a kill comes again
      assertEquals(names(0, 30), receive(consumer, 30));
      assertNothingComes(consumer);
    }
  }

  /** F24 (apache/pulsar#6451): a time-out and then a refusal of one message. */
  @Test
  void aTimeOutThenARefusalCountOnceEachAndTheDeadLetterIsSentOnce() throws Exception {
    String topic = newTopic();
    DeadLetterPolicy policy = DeadLetterPolicy.builder().maxRedeliverCount(3).deadLetterTopic(topic + "-dlq").build();
    try (Consumer<byte[]> dead = client.newConsumer().topic(topic + "-dlq").subscriptionName("d").subscribe();
        Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Shared)
            .ackTimeout(6, TimeUnit.SECONDS).negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS).deadLetterPolicy(policy).subscribe()) {
      publish(topic, 0, 1);
      List<Integer> counts = new ArrayList<>();
      Message<byte[]> first = next(consumer);
      counts.add(first.getRedeliveryCount());
      Message<byte[]> second = next(consumer); // it timed out
      counts.add(second.getRedeliveryCount());
      consumer.negativeAcknowledge(first);
      consumer.negativeAcknowledge(second);
      for (int i = 0; i < 2; i++) {
        Message<byte[]> again = next(consumer);
        counts.add(again.getRedeliveryCount());
        consumer.negativeAcknowledge(again);
      }
      assertEquals(List.of(0, 1, 2, 3), counts);
      assertEquals(List.of("m0"), receive(dead, 1));
      assertNothingComes(consumer);
      assertNothingComes(dead);
    }
  }
}
