// Moves money in transactions while somebody kills the servers, and looks at the books: a command is taken and acknowledged, and
// booked on two accounts, each a topic of its own, all in one transaction.
// Arguments: service URL, topics of commands, topics of accounts (each separated by commas), transactions at a time, the longest
// time in seconds that one may take. Ends when its input does: first all commands are carried out, then the books are checked.
// Lines on stdout: "committed", "aborted" or "failed REASON" for each transaction; at last "broken WHAT" for all that does not
// hold, and "books COMMANDS COMMITTED ABORTED FAILED CARRIED_OUT" (those that failed and were carried out all the same).

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

public final class Transfers {
    private static final int WAITING_MAX = 200;
    private static final int CARRIED_OUT_SECONDS_MAX = 180;
    private static final int READINGS_MAX = 20;
    private static final double ABORTED = 0.2;

    /** Half of one transfer, as an account has it. */
    private record Booking(String command, int account, long amount, String transaction) {
        static Booking of(int account, byte[] data) {
            String[] words = new String(data).split(" ");
            return new Booking(words[0], account, Long.parseLong(words[1]), words[2]);
        }
    }

    private record Command(int from, int to, long amount) {
        static Command of(byte[] data) {
            String[] words = new String(data).split(" ");
            return new Command(Integer.parseInt(words[0]), Integer.parseInt(words[1]), Long.parseLong(words[2]));
        }
    }

    private final PulsarClient client;
    private final String[] sources;
    private final String[] accounts;
    private final int seconds;
    private final List<Consumer<byte[]>> taken = new ArrayList<>();
    private final List<Producer<byte[]>> booking = new ArrayList<>();
    private final Set<String> committing = ConcurrentHashMap.newKeySet();
    private final Set<String> committed = ConcurrentHashMap.newKeySet();
    private final Set<String> aborted = ConcurrentHashMap.newKeySet();
    private final Set<String> unknown = ConcurrentHashMap.newKeySet();
    private final Map<String, Set<Integer>> booked = new ConcurrentHashMap<>();
    private final Set<String> broken = ConcurrentHashMap.newKeySet();
    private final AtomicInteger fed = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();
    private volatile boolean feeds = true;
    private volatile boolean works = true;

    private Transfers(PulsarClient client, String[] arguments) {
        this.client = client;
        sources = arguments[1].split(",");
        accounts = arguments[2].split(",");
        seconds = Integer.parseInt(arguments[4]);
    }

    public static void main(String[] arguments) throws Exception {
        int code = 1;
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true)
                .operationTimeout(60, TimeUnit.SECONDS).lookupTimeout(60, TimeUnit.SECONDS)
                .maxBackoffInterval(1, TimeUnit.SECONDS).build()) {
            code = new Transfers(client, arguments).run(Integer.parseInt(arguments[3])) ? 0 : 1;
        } catch (PulsarClientException closing) {
            closing.printStackTrace();
        }
        System.exit(code);
    }

    private boolean run(int threads) throws Exception {
        open();
        List<Thread> all = new ArrayList<>();
        for (int source = 0; source < sources.length; source++) {
            all.add(begun(feeder(source)));
        }
        for (int account = 0; account < accounts.length; account++) {
            begun(watcher(account));
        }
        for (int worker = 0; worker < threads; worker++) {
            all.add(begun(worker(taken.get(worker % taken.size()))));
        }
        while (System.in.read() >= 0) {
            continue;
        }
        feeds = false;
        Map<String, Command> commands = untilCarriedOut();
        works = false;
        for (Thread thread : all) {
            thread.join();
        }
        check(commands);
        broken.forEach(what -> say("broken " + what));
        long later = unknown.stream().filter(each -> carriedOut.contains(each)).count();
        say("books " + commands.size() + " " + committed.size() + " " + aborted.size() + " " + failed.get() + " " + later);
        return broken.isEmpty();
    }

    private final Set<String> carriedOut = new HashSet<>();

    private static void say(String line) {
        synchronized (System.out) {
            System.out.println(line);
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private Thread begun(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception failure) {
                failure.printStackTrace();
                broken.add("the workload itself: " + failure);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Every second topic has batches. The auditor's subscriptions keep what was published. */
    private void open() throws Exception {
        for (int account = 0; account < accounts.length; account++) {
            client.newConsumer().topic(accounts[account]).subscriptionName("audit").subscribe().close();
            booking.add(client.newProducer().topic(accounts[account]).enableBatching(account % 2 == 1)
                    .batchingMaxPublishDelay(1, TimeUnit.MILLISECONDS).sendTimeout(0, TimeUnit.SECONDS).create());
        }
        for (String source : sources) {
            client.newConsumer().topic(source).subscriptionName("audit").subscribe().close();
            taken.add(client.newConsumer().topic(source).subscriptionName("movers").subscriptionType(SubscriptionType.Shared)
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).enableBatchIndexAcknowledgment(true)
                    .negativeAckRedeliveryDelay(200, TimeUnit.MILLISECONDS).receiverQueueSize(50).subscribe());
        }
    }

    private Work feeder(int source) {
        return () -> {
            ThreadLocalRandom random = ThreadLocalRandom.current();
            try (Producer<byte[]> producer = client.newProducer().topic(sources[source]).enableBatching(source % 2 == 1)
                    .batchingMaxPublishDelay(20, TimeUnit.MILLISECONDS).sendTimeout(0, TimeUnit.SECONDS)
                    .blockIfQueueFull(true).maxPendingMessages(100).create()) {
                while (feeds) {
                    if (fed.get() - committed.size() > WAITING_MAX) {
                        Thread.sleep(10);
                        continue;
                    }
                    int from = random.nextInt(accounts.length);
                    int to = (from + 1 + random.nextInt(accounts.length - 1)) % accounts.length;
                    producer.sendAsync((from + " " + to + " " + random.nextInt(1, 1000)).getBytes());
                    fed.incrementAndGet();
                }
                producer.flush();
            }
        };
    }

    private static String name(MessageId id) {
        MessageIdAdv place = (MessageIdAdv) id;
        return place.getLedgerId() + ":" + place.getEntryId() + ":" + place.getBatchIndex();
    }

    private Work worker(Consumer<byte[]> source) {
        return () -> {
            while (works) {
                Message<byte[]> message = source.receive(500, TimeUnit.MILLISECONDS);
                if (message == null) {
                    continue;
                }
                try {
                    transfer(source, message);
                } catch (Exception failure) {
                    failed.incrementAndGet();
                    say("failed " + failure.toString().replace('\n', ' '));
                    source.negativeAcknowledge(message);
                }
            }
        };
    }

    private void transfer(Consumer<byte[]> source, Message<byte[]> message) throws Exception {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        Transaction transaction = client.newTransaction()
                .withTransactionTimeout(random.nextInt(seconds * 500, seconds * 1000), TimeUnit.MILLISECONDS).build()
                .get(60, TimeUnit.SECONDS);
        String id = transaction.getTxnID().getMostSigBits() + ":" + transaction.getTxnID().getLeastSigBits();
        try {
            book(source, message, transaction, id);
        } catch (Exception failure) {
            transaction.abort();
            throw failure;
        }
        if (random.nextDouble() < ABORTED) {
            transaction.abort().get(2L * seconds, TimeUnit.SECONDS);
            aborted.add(id);
            source.negativeAcknowledge(message);
            say("aborted");
            return;
        }
        committing.add(id);
        unknown.add(id);
        transaction.commit().get(2L * seconds, TimeUnit.SECONDS);
        unknown.remove(id);
        committed.add(id);
        say("committed");
    }

    private void book(Consumer<byte[]> source, Message<byte[]> message, Transaction transaction, String id) throws Exception {
        Command command = Command.of(message.getData());
        String name = source.getTopic().hashCode() + ":" + name(message.getMessageId());
        List<CompletableFuture<?>> asked = new ArrayList<>();
        asked.add(booking.get(command.from()).newMessage(transaction)
                .value((name + " " + -command.amount() + " " + id).getBytes()).sendAsync());
        asked.add(booking.get(command.to()).newMessage(transaction)
                .value((name + " " + command.amount() + " " + id).getBytes()).sendAsync());
        asked.add(source.acknowledgeAsync(message.getMessageId(), transaction));
        CompletableFuture.allOf(asked.toArray(new CompletableFuture<?>[0])).get(seconds, TimeUnit.SECONDS);
    }

    /** Reads on while everything goes on: nothing may come before its client has asked for the commit. */
    private Work watcher(int account) {
        return () -> {
            try (Reader<byte[]> reader = reader(accounts[account])) {
                while (true) {
                    Booking found = Booking.of(account, reader.readNext().getData());
                    if (!committing.contains(found.transaction())) {
                        broken.add("read before anybody committed it, or after it was aborted: " + found);
                    }
                    booked.computeIfAbsent(found.command(), each -> ConcurrentHashMap.newKeySet()).add(account);
                }
            }
        };
    }

    private Reader<byte[]> reader(String topic) throws Exception {
        return client.newReader().topic(topic).startMessageId(MessageId.earliest).create();
    }

    /** All commands, once the watchers have seen both bookings of each. */
    private Map<String, Command> untilCarriedOut() throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(CARRIED_OUT_SECONDS_MAX);
        Map<String, Command> commands = new HashMap<>();
        while (true) {
            commands.clear();
            for (String source : sources) {
                readAll(source, message -> commands.put(source.hashCode() + ":" + name(message.getMessageId()),
                        Command.of(message.getData())));
            }
            if (commands.keySet().stream().allMatch(each -> booked.getOrDefault(each, Set.of()).size() == 2)
                    && commands.size() >= fed.get()) {
                return commands;
            }
            if (System.nanoTime() > until) {
                return commands;
            }
            Thread.sleep(500);
        }
    }

    private interface Each {
        void take(Message<byte[]> message);
    }

    /** A connection that is lost meanwhile costs another reading. */
    private void readAll(String topic, Each each) throws Exception {
        List<Message<byte[]>> all = new ArrayList<>();
        for (int attempt = 1; ; attempt++) {
            try (Reader<byte[]> reader = reader(topic)) {
                while (reader.hasMessageAvailable()) {
                    all.add(reader.readNext());
                }
                break;
            } catch (PulsarClientException lost) {
                if (attempt == READINGS_MAX) {
                    throw lost;
                }
                all.clear();
            }
        }
        all.forEach(each::take);
    }

    private void check(Map<String, Command> commands) throws Exception {
        Map<String, Map<String, Booking>> found = new HashMap<>();
        long[] sum = {0};
        for (int account = 0; account < accounts.length; account++) {
            int number = account;
            readAll(accounts[account], message -> {
                Booking each = Booking.of(number, message.getData());
                sum[0] += each.amount();
                carriedOut.add(each.transaction());
                found.computeIfAbsent(each.command(), key -> new HashMap<>())
                        .put(number + " " + name(message.getMessageId()), each);
            });
        }
        if (sum[0] != 0) {
            broken.add("the sum of all accounts is " + sum[0]);
        }
        commands.forEach((name, command) -> checkOne(name, command, found.getOrDefault(name, Map.of()).values()));
        found.keySet().stream().filter(each -> !commands.containsKey(each)).forEach(each -> broken.add("no such command: " + each));
        committed.stream().filter(each -> !carriedOut.contains(each)).forEach(each -> broken.add("committed and not there: " + each));
        aborted.stream().filter(carriedOut::contains).forEach(each -> broken.add("aborted and there: " + each));
    }

    private void checkOne(String name, Command command, java.util.Collection<Booking> found) {
        Set<String> transactions = new HashSet<>();
        Set<List<Long>> amounts = new HashSet<>();
        for (Booking each : found) {
            transactions.add(each.transaction());
            amounts.add(List.of((long) each.account(), each.amount()));
        }
        Set<List<Long>> wanted = Set.of(List.of((long) command.from(), -command.amount()), List.of((long) command.to(), command.amount()));
        if (found.size() != 2 || transactions.size() != 1 || !amounts.equals(wanted)) {
            broken.add("command " + name + " (" + command + ") is booked as " + found);
        }
    }
}
