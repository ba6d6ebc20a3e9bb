import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.reactive.client.adapter.AdaptedReactivePulsarClientFactory;
import org.apache.pulsar.reactive.client.api.MessageSpec;
import org.apache.pulsar.reactive.client.api.ReactiveMessagePipeline;
import org.apache.pulsar.reactive.client.api.ReactivePulsarClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Counts how often a batch comes again after a reactive pipeline that has heard all of it was closed: at once (`close`), or when
 * the subscription has no backlog any more (`wait`). Arguments: URL WEB_URL ROUNDS close|wait
 */
public final class ClosedTooSoon {
    private static final int BATCH = 20;

    private ClosedTooSoon() {
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[2]);
        int again = 0;
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
                PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[1]).build()) {
            for (int round = 0; round < rounds; round++) {
                again += comesAgain(client, admin, "closed-too-soon-" + System.nanoTime(), arguments[3].equals("wait")) ? 1 : 0;
            }
        }
        System.out.println("came again in " + again + " of " + rounds);
    }

    private static boolean comesAgain(PulsarClient client, PulsarAdmin admin, String topic, boolean waits) throws Exception {
        Queue<String> heard = new ConcurrentLinkedQueue<>();
        ReactivePulsarClient reactive = AdaptedReactivePulsarClientFactory.create(client);
        ReactiveMessagePipeline pipeline = reactive.messageConsumer(Schema.STRING)
                .topic(topic)
                .subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .build()
                .messagePipeline()
                .messageHandler(each -> Mono.fromRunnable(() -> heard.add(each.getValue())))
                .build();
        try (pipeline) {
            pipeline.start();
            Flux<MessageSpec<String>> batch = Flux.range(0, BATCH).map(at -> MessageSpec.of("message-" + at));
            reactive.messageSender(Schema.STRING).topic(topic).build().sendMany(batch).blockLast();
            while (heard.size() < BATCH || waits && admin.topics().getStats(topic, true).getSubscriptions().get("s").getMsgBacklog() > 0) {
                Thread.sleep(1);
            }
        }
        try (Consumer<String> next = client.newConsumer(Schema.STRING).topic(topic).subscriptionName("s").subscribe()) {
            return next.receive(300, TimeUnit.MILLISECONDS) != null;
        }
    }
}
