package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MessageIdImpl;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Topics that keep nothing: non-persistent://. */
class NonPersistentTest extends Fixture {
  private static String newPassingTopic() {
    return "non-" + newTopic();
  }

  @ParameterizedTest
  @EnumSource(SubscriptionType.class)
  void whoeverIsThereGetsWhatIsPublished(SubscriptionType type) throws Exception {
    String topic = newPassingTopic();
    publish(topic, 0, 3);
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type).subscribe()) {
      for (MessageId id : publish(topic, 3, 20)) {
        MessageIdImpl given = (MessageIdImpl) id;
        assertEquals("0:0", given.getLedgerId() + ":" + given.getEntryId());
      }
      assertEquals(names(3, 20), receive(consumer, 20));
      assertNothingComes(consumer);
    }
  }

  @Test
  void batchesComeWholeAndPartitionsAreServedEach() throws Exception {
    String topic = newPassingTopic();
    createPartitioned(topic, 3);
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe()) {
      publish(client.newProducer().topic(topic), 0, 60);
      Set<String> got = new TreeSet<>(receive(consumer, 60));
      assertEquals(new TreeSet<>(names(0, 60)), got);
    }
  }

  @Test
  void whatTheConsumerHasNoRoomForIsLost() throws Exception {
    String topic = newPassingTopic();
    try (Consumer<byte[]> consumer =
        client.newConsumer().topic(topic).subscriptionName("s").receiverQueueSize(5).subscribe()) {
      publish(topic, 0, 100);
      List<String> got = new ArrayList<>(receive(consumer, 5));
      assertEquals(names(0, 5), got);
      assertNothingComes(consumer);
      publish(topic, 100, 1);
      assertEquals(List.of("m100"), receive(consumer, 1));
    }
  }

  @Test
  void aSubscriptionIsGoneWithItsLastConsumer() throws Exception {
    String topic = newPassingTopic();
    client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Shared).subscribe().close();
    publish(topic, 0, 3);
    try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe()) {
      assertNothingComes(consumer);
      assertThrows(PulsarClientException.class, () -> consumer.getLastMessageId());
      consumer.seek(MessageId.earliest);
      publish(topic, 3, 1);
      assertEquals(List.of("m3"), receive(consumer, 1));
    }
  }

  @Test
  void anExclusiveProducerKeepsOthersOut() throws Exception {
    String topic = newPassingTopic();
    try (Producer<byte[]> first = client.newProducer().topic(topic)
        .accessMode(org.apache.pulsar.client.api.ProducerAccessMode.Exclusive).create()) {
      assertThrows(PulsarClientException.ProducerBusyException.class, () -> client.newProducer().topic(topic).create());
      assertTrue(first.isConnected());
    }
  }
}
