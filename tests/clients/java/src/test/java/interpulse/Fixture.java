package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** What the suites share: one client to the server at PULSAR_TEST_URL, and short words for publish and receive. */
abstract class Fixture {
  static final int WAIT_SECONDS = 60;
  static PulsarClient client;

  @BeforeAll
  static void connect() throws Exception {
    client = newClient();
  }

  @AfterAll
  static void disconnect() throws Exception {
    client.close();
  }

  static PulsarClient newClient() throws Exception {
    return PulsarClient.builder().serviceUrl(System.getenv("PULSAR_TEST_URL")).operationTimeout(WAIT_SECONDS, TimeUnit.SECONDS).build();
  }

  static String newTopic() {
    return "persistent://public/default/java-" + UUID.randomUUID();
  }

  static List<String> names(int first, int count) {
    return IntStream.range(first, first + count).mapToObj(i -> "m" + i).toList();
  }

  static List<MessageId> publish(ProducerBuilder<byte[]> builder, int first, int count) throws Exception {
    try (Producer<byte[]> producer = builder.blockIfQueueFull(true).create()) {
      List<CompletableFuture<MessageId>> pending = new ArrayList<>();
      for (String name : names(first, count)) {
        pending.add(producer.sendAsync(name.getBytes()));
      }
      producer.flush();
      List<MessageId> ids = new ArrayList<>();
      for (CompletableFuture<MessageId> id : pending) {
        ids.add(id.get(WAIT_SECONDS, TimeUnit.SECONDS));
      }
      return ids;
    }
  }

  static List<MessageId> publish(String topic, int first, int count) throws Exception {
    return publish(client.newProducer().topic(topic).enableBatching(false), first, count);
  }

  static Message<byte[]> next(Consumer<byte[]> consumer) throws Exception {
    Message<byte[]> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
    assertNotNull(message, "nothing came");
    return message;
  }

  static String text(Message<byte[]> message) {
    return new String(message.getData());
  }

  static List<String> receive(Consumer<byte[]> consumer, int count) throws Exception {
    List<String> got = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Message<byte[]> message = next(consumer);
      got.add(text(message));
      consumer.acknowledge(message);
    }
    return got;
  }

  static void assertNothingComes(Consumer<byte[]> consumer) throws Exception {
    Message<byte[]> message = consumer.receive(300, TimeUnit.MILLISECONDS);
    assertNull(message, () -> "unexpected " + text(message));
  }

  static void createPartitioned(String topic, int partitions) throws Exception {
    URI uri = URI.create(System.getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + topic.replace("://", "/") + "/partitions");
    HttpRequest request = HttpRequest.newBuilder(uri).header("Content-Type", "application/json")
        .PUT(HttpRequest.BodyPublishers.ofString(Integer.toString(partitions))).build();
    assertEquals(204, HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode());
  }

  /** Kills the server with -9 and waits until it is there again. */
  static void restart(Path pipe, Path done) throws Exception {
    long before = Files.exists(done) ? Files.size(done) : 0;
    Files.writeString(pipe, "restart\n", StandardOpenOption.WRITE);
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!Files.exists(done) || Files.size(done) == before) {
      assertTrue(System.nanoTime() < deadline, "the server did not come back");
      Thread.sleep(20);
    }
  }

  /** POST to the admin REST; 204 is expected. */
  static void post(String path, String body) throws Exception {
    send("POST", path, body);
  }

  static void put(String path, String body) throws Exception {
    send("PUT", path, body);
  }

  private static void send(String method, String path, String body) throws Exception {
    URI uri = URI.create(System.getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + path);
    HttpRequest request = HttpRequest.newBuilder(uri).header("Content-Type", "application/json")
        .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
    assertEquals(204, HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode());
  }
}
