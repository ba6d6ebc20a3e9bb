// How many transactions a second: publishes so many messages in each and commits it, then acknowledges as many in each.
// Arguments: service URL, topic, seconds of each kind, seconds of warming up, threads, messages of a transaction.
// Lines on stdout: "begin KIND" and "end KIND transactions messages seconds p50_ms p99_ms" around what counts.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

public final class TransactionRate {
    private static final byte[] PAYLOAD = new byte[1024];
    private static volatile boolean counts;
    private static volatile boolean ends;
    private final PulsarClient client;
    private final int threads;
    private final int messages;

    private interface Work {
        /** False when there is nothing to do any more. */
        boolean within(Transaction transaction) throws Exception;
    }

    private TransactionRate(PulsarClient client, int threads, int messages) {
        this.client = client;
        this.threads = threads;
        this.messages = messages;
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        double seconds = Double.parseDouble(arguments[2]);
        double warm = Double.parseDouble(arguments[3]);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true)
                .operationTimeout(30, TimeUnit.SECONDS).build()) {
            TransactionRate rate = new TransactionRate(client, Integer.parseInt(arguments[4]), Integer.parseInt(arguments[5]));
            try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("rate").receiverQueueSize(5000)
                            .subscriptionType(SubscriptionType.Shared)
                            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
                    Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false)
                            .sendTimeout(0, TimeUnit.SECONDS).blockIfQueueFull(true).create()) {
                rate.run("publish", warm, seconds, transaction -> rate.publish(producer, transaction));
                rate.run("acknowledge", Math.min(1, warm), seconds, transaction -> rate.acknowledge(consumer, transaction));
            }
        }
        System.exit(0);
    }

    private boolean publish(Producer<byte[]> producer, Transaction transaction) throws Exception {
        List<CompletableFuture<?>> sent = new ArrayList<>();
        for (int each = 0; each < messages; each++) {
            sent.add(producer.newMessage(transaction).value(PAYLOAD).sendAsync());
        }
        CompletableFuture.allOf(sent.toArray(new CompletableFuture<?>[0])).get(60, TimeUnit.SECONDS);
        return true;
    }

    private boolean acknowledge(Consumer<byte[]> consumer, Transaction transaction) throws Exception {
        List<CompletableFuture<?>> acknowledged = new ArrayList<>();
        for (int each = 0; each < messages; each++) {
            Message<byte[]> message = consumer.receive(5, TimeUnit.SECONDS);
            if (message == null) {
                return false;
            }
            acknowledged.add(consumer.acknowledgeAsync(message.getMessageId(), transaction));
        }
        CompletableFuture.allOf(acknowledged.toArray(new CompletableFuture<?>[0])).get(60, TimeUnit.SECONDS);
        return true;
    }

    private void run(String kind, double warm, double seconds, Work work) throws Exception {
        counts = ends = false;
        List<List<Long>> took = new ArrayList<>();
        List<Thread> running = new ArrayList<>();
        for (int each = 0; each < threads; each++) {
            List<Long> mine = new ArrayList<>();
            took.add(mine);
            Thread thread = new Thread(() -> repeat(work, mine));
            running.add(thread);
            thread.start();
        }
        Thread.sleep((long) (warm * 1000));
        System.out.println("begin " + kind);
        System.out.flush();
        counts = true;
        long began = System.nanoTime();
        Thread.sleep((long) (seconds * 1000));
        counts = false;
        double elapsed = (System.nanoTime() - began) / 1e9;
        long[] all = took.stream().flatMap(List::stream).mapToLong(Long::longValue).sorted().toArray();
        System.out.printf("end %s %d %d %.3f %.2f %.2f%n", kind, all.length, all.length * messages, elapsed,
                at(all, 0.5), at(all, 0.99));
        System.out.flush();
        ends = true;
        for (Thread thread : running) {
            thread.join();
        }
    }

    private void repeat(Work work, List<Long> took) {
        try {
            while (!ends) {
                long began = System.nanoTime();
                Transaction transaction = client.newTransaction().withTransactionTimeout(5, TimeUnit.MINUTES).build().get();
                if (!work.within(transaction)) {
                    transaction.abort().get();
                    return;
                }
                transaction.commit().get(60, TimeUnit.SECONDS);
                if (counts) {
                    synchronized (took) {
                        took.add(System.nanoTime() - began);
                    }
                }
            }
        } catch (Exception failed) {
            failed.printStackTrace();
            System.exit(1);
        }
    }

    private static double at(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.min(sorted.length - 1, sorted.length * share)] / 1e6;
    }
}
