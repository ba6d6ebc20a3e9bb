package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TableView;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Compacted topics: table views, readers and consumers of what is compacted, and the end of a topic over a kill -9. */
class CompactionTest extends Fixture {
  private static String ask(String method, String topic, String what) throws Exception {
    URI uri = URI.create(System.getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + topic.replace("://", "/") + "/" + what);
    HttpRequest request = HttpRequest.newBuilder(uri).method(method, HttpRequest.BodyPublishers.noBody()).build();
    HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    assertEquals(2, answer.statusCode() / 100, answer.body());
    return answer.body();
  }

  private static void compact(String topic) throws Exception {
    ask("PUT", topic, "compaction");
    until(() -> {
      try {
        String status = ask("GET", topic, "compaction");
        assertTrue(!status.contains("ERROR"), status);
        return status.contains("SUCCESS");
      } catch (Exception failed) {
        throw new AssertionError(failed);
      }
    });
  }

  private static Producer<String> producer(String topic, boolean batching) throws Exception {
    return client.newProducer(Schema.STRING).topic(topic).enableBatching(batching).create();
  }

  private static void put(Producer<String> producer, String key, String value) throws Exception {
    producer.newMessage().key(key).value(value).send();
  }

  private static TableView<String> tableView(String topic) throws Exception {
    return client.newTableView(Schema.STRING).topic(topic).autoUpdatePartitionsInterval(5, TimeUnit.MINUTES).create();
  }

  /** What a table view has that begins now. */
  private static Map<String, String> table(String topic) throws Exception {
    try (TableView<String> view = tableView(topic)) {
      return new TreeMap<>(asMap(view));
    }
  }

  private static Map<String, String> asMap(TableView<String> view) {
    Map<String, String> found = new HashMap<>();
    view.forEach(found::put);
    return found;
  }

  private static Map<String, String> fill(Producer<String> producer, int keys, int rounds) throws Exception {
    Map<String, String> newest = new TreeMap<>();
    for (int i = 0; i < keys * rounds; i++) {
      newest.put("k" + i % keys, "v" + i);
      producer.newMessage().key("k" + i % keys).value("v" + i).sendAsync();
    }
    producer.flush();
    producer.newMessage().key("k0").value(null).send();
    newest.remove("k0");
    return newest;
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aTableViewHasTheNewestOfEachKeyAndHearsOfChangesAlsoWhileItIsCompacted(boolean batching) throws Exception {
    String topic = newTopic();
    try (Producer<String> producer = producer(topic, batching)) {
      Map<String, String> newest = fill(producer, 20, 5);
      assertEquals(newest, table(topic));
      compact(topic);
      assertEquals(newest, table(topic));
      try (TableView<String> view = tableView(topic)) {
        Map<String, String> heard = new ConcurrentHashMap<>();
        view.forEachAndListen((key, value) -> heard.put(key, String.valueOf(value)));
        assertEquals(newest, heard);
        put(producer, "k1", "changed");
        until(() -> "changed".equals(view.get("k1")));
        put(producer, "k2", null);
        until(() -> !view.containsKey("k2"));
        compact(topic);
        put(producer, "new", "after");
        until(() -> "after".equals(heard.get("new")));
        assertEquals("changed", heard.get("k1"));
        newest.put("k1", "changed");
        newest.remove("k2");
        newest.put("new", "after");
        assertEquals(newest, asMap(view));
      }
      assertEquals(newest, table(topic));
    }
  }

  @Test
  void aTableViewOfPartitionsHasThemAll() throws Exception {
    String topic = newTopic();
    createPartitioned(topic, 3);
    try (Producer<String> producer = producer(topic, true)) {
      Map<String, String> newest = fill(producer, 20, 3);
      ask("PUT", topic, "compaction");
      assertEquals(newest, table(topic));
    }
  }

  private static Reader<byte[]> reader(String topic) throws Exception {
    return client.newReader().topic(topic).startMessageId(MessageId.earliest).readCompacted(true).create();
  }

  @Test
  void readersAndConsumersOfWhatIsCompactedGetTheNewestThenWhatCameAfter() throws Exception {
    String topic = newTopic();
    try (Producer<String> producer = producer(topic, true)) {
      Map<String, String> newest = fill(producer, 20, 5);
      compact(topic);
      put(producer, "k3", "after");
      put(producer, "k4", null);
      List<String> expected = new ArrayList<>(newest.values().stream().sorted().toList());
      expected.addAll(List.of("k3=after", "k4=null"));
      try (Reader<byte[]> reader = reader(topic)) {
        assertEquals(expected, texts(reader));
        reader.seek(MessageId.earliest);
        assertEquals(expected, texts(reader));
      }
      try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").readCompacted(true)
          .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
        for (int i = 0; i < newest.size(); i++) {
          Message<byte[]> message = next(consumer);
          assertEquals(newest.get(message.getKey()), text(message));
          consumer.acknowledge(message);
        }
        assertEquals("after", text(next(consumer)));
      }
      assertThrows(PulsarClientException.class, () -> client.newConsumer().topic(topic).subscriptionName("shared")
          .subscriptionType(SubscriptionType.Shared).readCompacted(true).subscribe());
    }
  }

  /** Of each message its value, with its key after the horizon; sorted before. */
  private static List<String> texts(Reader<byte[]> reader) throws Exception {
    List<String> compacted = new ArrayList<>();
    List<String> after = new ArrayList<>();
    while (reader.hasMessageAvailable()) {
      Message<byte[]> message = reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS);
      String value = message.size() == 0 ? "null" : text(message);
      if (value.startsWith("v")) {
        compacted.add(value);
      } else {
        after.add(message.getKey() + "=" + value);
      }
    }
    compacted.sort(null);
    compacted.addAll(after);
    return compacted;
  }

  @Test
  void whatIsCompactedAndTheEndOfATopicAreThereAfterKillMinusNine() throws Exception {
    assumeTrue(System.getenv("RESTART_PIPE") != null, "the server is not ours to kill");
    String topic = newTopic();
    String ended = newTopic();
    publish(ended, 0, 2);
    try (Producer<String> producer = producer(topic, true);
        Consumer<byte[]> waiting = client.newConsumer().topic(ended).subscriptionName("s")
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
      Map<String, String> newest = fill(producer, 20, 5);
      compact(topic);
      ask("POST", ended, "terminate");
      try (TableView<String> view = tableView(topic)) {
        restart();
        put(producer, "k1", "changed");
        newest.put("k1", "changed");
        until(() -> "changed".equals(view.get("k1")));
        assertEquals(newest, asMap(view));
        assertEquals(newest, table(topic));
        compact(topic);
        assertEquals(newest, table(topic));
        assertNull(view.get("k0"));
      }
      assertThrows(PulsarClientException.TopicTerminatedException.class, () -> client.newProducer().topic(ended).create());
      assertEquals(names(0, 2), receive(waiting, 2));
      until(waiting::hasReachedEndOfTopic);
    }
  }

  private static void restart() throws Exception {
    Path done = Path.of(System.getenv("RESTART_DONE"));
    long before = Files.exists(done) ? Files.size(done) : 0;
    Files.writeString(Path.of(System.getenv("RESTART_PIPE")), "restart\n", StandardOpenOption.WRITE);
    until(() -> done.toFile().length() > before);
  }

  private static void until(BooleanSupplier isSo) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
    while (!isSo.getAsBoolean()) {
      assertTrue(System.nanoTime() < deadline, "it did not come to that");
      Thread.sleep(10);
    }
  }
}
