package interpulse.strangers;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.reactive.client.api.MessageSpec;
import org.apache.pulsar.reactive.client.api.ReactiveMessagePipeline;
import org.apache.pulsar.reactive.client.api.ReactiveMessageSender;
import org.apache.pulsar.reactive.client.api.ReactivePulsarClient;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.ExitCodeGenerator;
import org.springframework.pulsar.core.PulsarAdministration;
import org.springframework.pulsar.core.PulsarTemplate;
import org.springframework.stereotype.Component;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Sends to the listeners, waits for what must come of it, and prints a line a check: `check NAME passed|failed MS NOTE`. */
@Component
public class Checks implements CommandLineRunner, ExitCodeGenerator {
    static final String SINGLES = "spring-singles";
    static final String ORDERS = "spring-orders";
    static final String BATCHES = "spring-batches";
    static final String REACTIVE = "spring-reactive";
    static final String REFUSED = "spring-refused";
    static final String DEAD_LETTERS = "spring-dead-letters";
    static final String TRANSACTIONS = "spring-transactions";
    static final String MANY = "spring-many";
    private static final int FEW = 20;
    private static final int MESSAGES = Integer.getInteger("messages", 10_000);
    private static final long WAIT_MS_MAX = 60_000;

    private final Listeners heard;
    private final PulsarTemplate<Object> template;
    private final PulsarAdministration administration;
    private final ReactivePulsarClient reactiveClient;
    private final Queue<String> reactive = new ConcurrentLinkedQueue<>();
    private int failed;

    Checks(Listeners heard, PulsarTemplate<Object> template, PulsarAdministration administration, ReactivePulsarClient reactiveClient) {
        this.heard = heard;
        this.template = template;
        this.administration = administration;
        this.reactiveClient = reactiveClient;
    }

    @Override
    public void run(String... arguments) {
        check("listener", () -> sendAndHear(SINGLES, heard.singles));
        check("listenerOfRecords", this::records);
        check("batchListener", () -> sendAndHear(BATCHES, heard.ofBatches));
        check("reactive", this::reactive);
        check("deadLetters", this::deadLetters);
        check("transactionCommitted", this::transactionCommitted);
        check("transactionAborted", this::transactionAborted);
        check("manySentOneAtATime", () -> manyOneAtATime(MESSAGES));
        check("manySentTogether", () -> manyTogether(MESSAGES));
    }

    @Override
    public int getExitCode() {
        return failed == 0 ? 0 : 1;
    }

    private boolean sendAndHear(String topic, Queue<String> queue) {
        List<String> sent = names(FEW);
        sent.forEach(each -> template.send(topic, each));
        return comes(() -> List.copyOf(queue).equals(sent));
    }

    private boolean records() {
        IntStream.range(0, FEW).forEach(at -> template.send(ORDERS, new Listeners.Order("order", at)));
        return comes(() -> heard.orders.size() == FEW);
    }

    /** Closed before its last acknowledgement, a pipeline hears the whole batch again when the application runs a second time. */
    private boolean reactive() {
        List<String> sent = names(FEW);
        ReactiveMessagePipeline pipeline = reactiveClient
                .messageConsumer(Schema.STRING)
                .topic(REACTIVE)
                .subscriptionName("reactive")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .build()
                .messagePipeline()
                .messageHandler(each -> Mono.fromRunnable(() -> reactive.add(each.getValue())))
                .build();
        try (pipeline) {
            pipeline.start();
            ReactiveMessageSender<String> sender =
                    reactiveClient.messageSender(Schema.STRING).topic(REACTIVE).build();
            sender.sendMany(Flux.fromIterable(sent).map(MessageSpec::of)).blockLast();
            return comes(() -> List.copyOf(reactive).equals(sent)) && comes(this::reactiveIsAcknowledged);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private boolean reactiveIsAcknowledged() {
        try (PulsarAdmin admin = administration.createAdminClient()) {
            return admin.topics().getStats(REACTIVE, true).getSubscriptions().get("reactive").getMsgBacklog() == 0;
        } catch (PulsarAdminException | PulsarClientException error) {
            throw new IllegalStateException(error);
        }
    }

    private boolean deadLetters() {
        names(3).forEach(each -> template.send(REFUSED, each));
        return comes(() -> heard.dead.size() == 3) && heard.refused.size() == 3 * (1 + Application.DELIVERIES_MAX);
    }

    private boolean transactionCommitted() {
        List<String> sent = names(FEW);
        template.executeInTransaction(inside -> {
            sent.forEach(each -> inside.send(TRANSACTIONS, each));
            return null;
        });
        return comes(() -> List.copyOf(heard.committed).equals(sent));
    }

    private boolean transactionAborted() {
        int before = heard.committed.size();
        try {
            template.executeInTransaction(inside -> {
                inside.send(TRANSACTIONS, "aborted");
                throw new IllegalStateException("on purpose");
            });
        } catch (RuntimeException expected) {
            template.executeInTransaction(inside -> inside.send(TRANSACTIONS, "after"));
        }
        return comes(() -> heard.committed.size() > before) && !heard.committed.contains("aborted");
    }

    private boolean manyOneAtATime(int count) {
        int before = heard.many.size();
        names(count).forEach(each -> template.send(MANY, each));
        return comes(() -> heard.many.size() == before + count);
    }

    private boolean manyTogether(int count) {
        int before = heard.many.size();
        CompletableFuture<?>[] sent =
                names(count).stream().map(each -> template.sendAsync(MANY, each)).toArray(CompletableFuture[]::new);
        CompletableFuture.allOf(sent).join();
        return comes(() -> heard.many.size() == before + count);
    }

    private static List<String> names(int count) {
        return IntStream.range(0, count).mapToObj(at -> "message-" + at).collect(Collectors.toList());
    }

    private static boolean comes(BooleanSupplier isSo) {
        long deadline = System.currentTimeMillis() + WAIT_MS_MAX;
        while (!isSo.getAsBoolean() && System.currentTimeMillis() < deadline) {
            try {
                Thread.sleep(5);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                return false;
            }
        }
        return isSo.getAsBoolean();
    }

    private void check(String name, BooleanSupplier work) {
        long began = System.nanoTime();
        String note = "not what was sent";
        boolean passed = false;
        try {
            passed = work.getAsBoolean();
        } catch (RuntimeException error) {
            note = String.valueOf(error).replace('\n', ' ');
        }
        failed += passed ? 0 : 1;
        long milliseconds = (System.nanoTime() - began) / 1_000_000;
        System.out.printf("check %s %s %d %s%n", name, passed ? "passed" : "failed", milliseconds, passed ? "" : note);
    }
}
