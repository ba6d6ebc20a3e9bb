package interpulse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
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
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.PulsarClientException.TransactionConflictException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClient;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException.InvalidTxnStatusException;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException.MetaStoreHandlerNotExistsException;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException.TransactionNotFoundException;
import org.apache.pulsar.client.api.transaction.TxnID;
import org.apache.pulsar.client.impl.PulsarClientImpl;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is published and acknowledged in transactions is seen as a whole or not at all. */
class TransactionsTest extends Fixture {
  private static PulsarClient transactional;

  @BeforeAll
  static void connectForTransactions() throws Exception {
    transactional = PulsarClient.builder().serviceUrl(System.getenv("PULSAR_TEST_URL")).enableTransaction(true)
        .operationTimeout(WAIT_SECONDS, TimeUnit.SECONDS).build();
  }

  @AfterAll
  static void disconnectFromTransactions() throws Exception {
    transactional.close();
  }

  private static Transaction begin() throws Exception {
    return transactional.newTransaction().withTransactionTimeout(5, TimeUnit.MINUTES).build().get(WAIT_SECONDS, TimeUnit.SECONDS);
  }

  private static void end(Transaction transaction, boolean commits) throws Exception {
    (commits ? transaction.commit() : transaction.abort()).get(WAIT_SECONDS, TimeUnit.SECONDS);
  }

  private static Producer<byte[]> producer(String topic, boolean batching) throws Exception {
    return transactional.newProducer().topic(topic).enableBatching(batching).sendTimeout(0, TimeUnit.SECONDS).create();
  }

  private static Consumer<byte[]> consumer(String topic, SubscriptionType type) throws Exception {
    return transactional.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).enableBatchIndexAcknowledgment(true)
        .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void messagesOfACommittedTransactionComeTogetherAndThoseOfAnAbortedOneNever(boolean batching) throws Exception {
    String topic = newTopic();
    try (Producer<byte[]> producer = producer(topic, batching); Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Shared)) {
      Transaction committed = begin();
      Transaction aborted = begin();
      producer.send("plain".getBytes());
      for (String name : names(0, 10)) {
        producer.newMessage(committed).value(name.getBytes()).sendAsync();
        producer.newMessage(aborted).value("never".getBytes()).sendAsync();
      }
      producer.flush();
      assertEquals(List.of("plain"), receive(consumer, 1));
      assertNothingComes(consumer);
      end(aborted, false);
      assertNothingComes(consumer);
      end(committed, true);
      assertEquals(names(0, 10), receive(consumer, 10));
      assertNothingComes(consumer);
    }
    try (Reader<byte[]> reader = client.newReader().topic(topic).startMessageId(MessageId.earliest).create()) {
      int count = 0;
      while (reader.hasMessageAvailable()) {
        reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS);
        count++;
      }
      assertEquals(11, count);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void acknowledgementsCountWhenTheirTransactionIsCommitted(boolean batching) throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Shared)) {
      publish(client.newProducer().topic(topic).enableBatching(batching).batchingMaxPublishDelay(1, TimeUnit.SECONDS), 0, 6);
      Transaction aborted = begin();
      List<Message<byte[]>> got = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        got.add(next(consumer));
        consumer.acknowledgeAsync(got.get(i).getMessageId(), aborted).get(WAIT_SECONDS, TimeUnit.SECONDS);
      }
      Transaction second = begin();
      ExecutionException refused = assertThrows(ExecutionException.class,
          () -> consumer.acknowledgeAsync(got.get(0).getMessageId(), second).get(WAIT_SECONDS, TimeUnit.SECONDS));
      assertInstanceOf(TransactionConflictException.class, refused.getCause());
      assertNothingComes(consumer);
      end(aborted, false);
      Transaction committed = begin();
      TreeMap<String, Integer> again = new TreeMap<>();
      for (int i = 0; i < 6; i++) {
        Message<byte[]> message = next(consumer);
        again.merge(text(message), 1, Integer::sum);
        consumer.acknowledgeAsync(message.getMessageId(), committed).get(WAIT_SECONDS, TimeUnit.SECONDS);
      }
      assertEquals(6, again.size());
      end(committed, true);
      end(second, false);
    }
    try (Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Shared)) {
      assertNothingComes(consumer);
    }
  }

  @Test
  void aCumulativeAcknowledgementCountsWhenItIsCommitted() throws Exception {
    String topic = newTopic();
    try (Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Exclusive)) {
      publish(topic, 0, 10);
      Message<byte[]> last = null;
      for (int i = 0; i < 5; i++) {
        last = next(consumer);
      }
      Transaction aborted = begin();
      consumer.acknowledgeCumulativeAsync(last.getMessageId(), aborted).get(WAIT_SECONDS, TimeUnit.SECONDS);
      end(aborted, false);
      Transaction committed = begin();
      consumer.acknowledgeCumulativeAsync(last.getMessageId(), committed).get(WAIT_SECONDS, TimeUnit.SECONDS);
      end(committed, true);
    }
    try (Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Exclusive)) {
      assertEquals(names(5, 5), receive(consumer, 5));
    }
  }

  private static int terminate(String topic) throws Exception {
    URI uri = URI.create(System.getenv("PULSAR_TEST_WEB_URL") + "/admin/v2/" + topic.replace("://", "/") + "/terminate");
    HttpRequest request = HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.noBody()).build();
    return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
  }

  /** On Apache's brokers (4.0.8) it is terminated, and the transaction never ends. */
  @Test
  void aTopicIsTerminatedWhenItsTransactionsHaveEnded() throws Exception {
    String topic = newTopic();
    try (Producer<byte[]> producer = producer(topic, false); Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Shared)) {
      Transaction open = begin();
      producer.newMessage(open).value("m0".getBytes()).send();
      producer.send("m1".getBytes());
      assertEquals(409, terminate(topic));
      end(open, true);
      assertEquals(200, terminate(topic));
      assertEquals(names(0, 2), receive(consumer, 2));
      Transaction late = begin();
      assertThrows(PulsarClientException.TopicTerminatedException.class,
          () -> transactional.newProducer().topic(topic).create());
      end(late, true);
    }
    assertEquals(names(0, 2).size(), counted(topic).size(), "whoever comes then finds what was there");
  }

  @Test
  void whatIsWrongWithATransactionIsToldAsItsOwnKind() throws Exception {
    TransactionCoordinatorClient coordinators = ((PulsarClientImpl) transactional).getTcClient();
    TxnID never = new TxnID(0, 1L << 40);
    String topic = newTopic();
    assertTold(TransactionNotFoundException.class, coordinators.commitAsync(never));
    assertTold(TransactionNotFoundException.class, coordinators.abortAsync(never));
    assertTold(TransactionNotFoundException.class, coordinators.addPublishPartitionToTxnAsync(never, List.of(topic)));
    assertTold(TransactionNotFoundException.class, coordinators.addSubscriptionToTxnAsync(never, topic, "s"));
    assertTold(MetaStoreHandlerNotExistsException.class, coordinators.commitAsync(new TxnID(1L << 20, 0)));
    Transaction ended = begin();
    end(ended, true);
    assertTold(InvalidTxnStatusException.class, ended.commit());
    assertTold(TransactionNotFoundException.class, coordinators.abortAsync(ended.getTxnID()));
    TxnID late = coordinators.newTransactionAsync(100, TimeUnit.MILLISECONDS).get(WAIT_SECONDS, TimeUnit.SECONDS);
    for (long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS); ; ) {
      try { // until its time is up
        coordinators.addPublishPartitionToTxnAsync(late, List.of(topic)).get(WAIT_SECONDS, TimeUnit.SECONDS);
        assertTrue(System.nanoTime() < until);
        Thread.sleep(50);
      } catch (ExecutionException timedOut) {
        assertTrue(timedOut.getCause() instanceof TransactionNotFoundException
            || timedOut.getCause() instanceof InvalidTxnStatusException, () -> timedOut.toString());
        break;
      }
    }
  }

  private static void assertTold(Class<? extends Exception> kind, CompletableFuture<?> asked) {
    ExecutionException refused = assertThrows(ExecutionException.class, () -> asked.get(WAIT_SECONDS, TimeUnit.SECONDS));
    assertInstanceOf(kind, refused.getCause());
  }

  /** Moves money: each message taken and the two that say what became of it are one transaction; the sums stay. */
  @Test
  void theBooksBalanceWhenTheServerIsKilledInTheMiddle() throws Exception {
    assumeTrue(System.getenv("RESTART_PIPE") != null);
    int transfers = 40;
    String orders = newTopic();
    String debits = newTopic();
    String credits = newTopic();
    publish(orders, 0, transfers);
    for (String book : List.of(debits, credits)) {
      consumer(book, SubscriptionType.Exclusive).close(); // keeps what is published
    }
    try (Consumer<byte[]> taken = consumer(orders, SubscriptionType.Shared);
        Producer<byte[]> debit = producer(debits, false);
        Producer<byte[]> credit = producer(credits, false)) {
      Set<String> committed = new HashSet<>();
      for (int attempt = 0; committed.size() < transfers; attempt++) {
        if (attempt == transfers / 3) {
          Files.writeString(Path.of(System.getenv("RESTART_PIPE")), "restart\n", StandardOpenOption.WRITE);
        }
        Message<byte[]> order = next(taken); // what was aborted comes again
        if (transfer(order, taken, debit, credit, attempt % 7 != 3)) {
          committed.add(text(order));
        }
      }
    }
    TreeMap<String, Integer> once = new TreeMap<>();
    names(0, transfers).forEach(name -> once.put(name, 1));
    assertEquals(once, counted(debits));
    assertEquals(once, counted(credits));
  }

  /** A redelivery of what is acknowledged, or is being, is refused with a conflict: somebody has done it. */
  private static boolean transfer(Message<byte[]> order, Consumer<byte[]> taken, Producer<byte[]> debit, Producer<byte[]> credit,
      boolean commits) throws Exception {
    Transaction transaction = begin();
    try {
      debit.newMessage(transaction).value(order.getData()).sendAsync().get(WAIT_SECONDS, TimeUnit.SECONDS);
      credit.newMessage(transaction).value(order.getData()).sendAsync().get(WAIT_SECONDS, TimeUnit.SECONDS);
      taken.acknowledgeAsync(order.getMessageId(), transaction).get(WAIT_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException failed) {
      end(transaction, false);
      if (!(failed.getCause() instanceof TransactionConflictException)) {
        taken.negativeAcknowledge(order);
      }
      return false;
    }
    end(transaction, commits);
    return commits;
  }

  private static TreeMap<String, Integer> counted(String topic) throws Exception {
    TreeMap<String, Integer> found = new TreeMap<>();
    try (Reader<byte[]> reader = client.newReader().topic(topic).startMessageId(MessageId.earliest).create()) {
      while (reader.hasMessageAvailable()) {
        found.merge(text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)), 1, Integer::sum);
      }
    }
    return found;
  }
}
