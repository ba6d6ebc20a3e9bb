package interpulse.strangers;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.SubscriptionType;
import org.springframework.pulsar.annotation.PulsarListener;
import org.springframework.pulsar.listener.AckMode;
import org.springframework.stereotype.Component;

/** Listeners of each kind; what each has received is kept for {@link Checks}. */
@Component
public class Listeners {
    record Order(String name, int number) {}

    final Queue<String> singles = new ConcurrentLinkedQueue<>();
    final Queue<Order> orders = new ConcurrentLinkedQueue<>();
    final Queue<String> ofBatches = new ConcurrentLinkedQueue<>();
    final Queue<Integer> batchSizes = new ConcurrentLinkedQueue<>();
    final Queue<String> refused = new ConcurrentLinkedQueue<>();
    final Queue<String> dead = new ConcurrentLinkedQueue<>();
    final Queue<String> committed = new ConcurrentLinkedQueue<>();
    final Queue<String> many = new ConcurrentLinkedQueue<>();

    @PulsarListener(topics = Checks.SINGLES, subscriptionName = "singles", transactional = "false")
    void single(String message) {
        singles.add(message);
    }

    @PulsarListener(topics = Checks.ORDERS, subscriptionName = "orders", transactional = "false")
    void order(Order message) {
        orders.add(message);
    }

    @PulsarListener(topics = Checks.BATCHES, subscriptionName = "batches", transactional = "false", batch = true, ackMode = AckMode.BATCH)
    void batch(List<Message<String>> messages) {
        batchSizes.add(messages.size());
        messages.forEach(each -> ofBatches.add(each.getValue()));
    }

    @PulsarListener(
            topics = Checks.REFUSED,
            subscriptionName = "refused",
            transactional = "false",
            subscriptionType = SubscriptionType.Shared,
            ackMode = AckMode.RECORD,
            deadLetterPolicy = "deadLetterPolicy",
            negativeAckRedeliveryBackoff = "redeliveryBackoff")
    void refuse(String message) {
        refused.add(message);
        throw new IllegalStateException("refused on purpose: " + message);
    }

    @PulsarListener(topics = Checks.DEAD_LETTERS, subscriptionName = "dead", transactional = "false")
    void dead(String message) {
        dead.add(message);
    }

    @PulsarListener(topics = Checks.TRANSACTIONS, subscriptionName = "transactions", transactional = "false")
    void committed(String message) {
        committed.add(message);
    }

    @PulsarListener(topics = Checks.MANY, subscriptionName = "many", transactional = "false")
    void many(String message) {
        many.add(message);
    }
}
