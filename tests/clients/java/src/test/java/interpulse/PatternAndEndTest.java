package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.RegexSubscriptionMode;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.junit.jupiter.api.Test;

/** Consumers of patterns while topics come and go, and topics that have come to their end. */
class PatternAndEndTest extends Fixture {
  private static int ask(String method, String path) throws Exception {
    URI uri = URI.create(System.getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + path);
    HttpRequest request = HttpRequest.newBuilder(uri).method(method, HttpRequest.BodyPublishers.noBody()).build();
    return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
  }

  /** Brokers look at patterns of at most 50 characters (subscriptionPatternMaxLength). */
  private static String newShortTopic() {
    return "persistent://public/default/j" + UUID.randomUUID().toString().substring(0, 8);
  }

  private static Consumer<byte[]> ofPattern(String start, RegexSubscriptionMode mode) throws Exception {
    // the watcher has to find out: the client's own look comes after five minutes
    return client.newConsumer().topicsPattern(Pattern.compile(start + ".*")).subscriptionName("s").subscriptionTopicsMode(mode)
        .patternAutoDiscoveryPeriod(5, TimeUnit.MINUTES)
        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
  }

  @Test
  void aPatternFollowsTopicsThatComeAndGo() throws Exception {
    String start = newShortTopic();
    publish(start + "-a", 0, 2);
    try (Consumer<byte[]> consumer = ofPattern(start, RegexSubscriptionMode.PersistentOnly)) {
      Set<String> got = new TreeSet<>(receive(consumer, 2));
      publish(start + "-b", 2, 2);
      got.addAll(receive(consumer, 2));
      createPartitioned(start + "-c", 2);
      publish(client.newProducer().topic(start + "-c").enableBatching(false), 4, 4);
      got.addAll(receive(consumer, 4));
      assertEquals(new TreeSet<>(names(0, 8)), got);
      assertEquals(204, ask("DELETE", (start + "-a?force=true").replace("://", "/")));
      publish(start + "-b", 8, 1);
      assertEquals(names(8, 1), receive(consumer, 1));
    }
  }

  @Test
  void aPatternIsOfTheKindOfTopicsThatItAsksFor() throws Exception {
    String start = newShortTopic();
    String passing = "non-" + start + "-x";
    try (Producer<byte[]> keeper = client.newProducer().topic(passing).create();
        Consumer<byte[]> consumer = ofPattern(start.replace("persistent://", ""), RegexSubscriptionMode.AllTopics)) {
      keeper.send("passing".getBytes());
      Message<byte[]> message = next(consumer);
      assertEquals("passing", text(message));
      assertTrue(message.getTopicName().startsWith("non-persistent://"));
    }
  }

  @Test
  void whoHasReadAllOfATerminatedTopicIsToldAndNobodyPublishesToIt() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
        Consumer<byte[]> unread = client.newConsumer().topic(topic).subscriptionName("late").subscribe();
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      producer.send("m0".getBytes());
      assertEquals(200, ask("POST", topic.replace("://", "/") + "/terminate"));
      assertThrows(PulsarClientException.TopicTerminatedException.class, () -> producer.send("late".getBytes()));
      assertEquals(names(0, 1), receive(consumer, 1));
      until(consumer::hasReachedEndOfTopic);
    }
    assertThrows(PulsarClientException.TopicTerminatedException.class, () -> client.newProducer().topic(topic).create());
    try (Consumer<byte[]> late = client.newConsumer().topic(topic).subscriptionName("late").subscribe()) {
      assertFalse(late.hasReachedEndOfTopic());
      assertEquals(names(0, 1), receive(late, 1));
      until(late::hasReachedEndOfTopic);
    }
  }

  @Test
  void aPartitionedTopicEndsWithEachOfItsPartitions() throws Exception {
    String topic = newTopic();
    createPartitioned(topic, 2);
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
        Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
      producer.send("m0".getBytes());
      assertEquals(200, ask("POST", topic.replace("://", "/") + "/terminate/partitions"));
      assertThrows(PulsarClientException.TopicTerminatedException.class, () -> producer.send("late".getBytes()));
      assertEquals(names(0, 1), receive(consumer, 1));
      until(consumer::hasReachedEndOfTopic);
    }
  }

  private static void until(BooleanSupplier isSo) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
    while (!isSo.getAsBoolean()) {
      assertTrue(System.nanoTime() < deadline, "it did not come to that");
      Thread.sleep(10);
    }
  }
}
