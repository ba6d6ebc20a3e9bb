import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.common.policies.data.RetentionPolicies;

/**
 * Asks one broker of a cluster for what is done at another: redirects are followed by Apache's admin client, with method and body, and
 * what concerns a partitioned topic is done to all of its partitions.
 *
 * <p>Arguments: the URL of the broker's web server, then topics, then a name for a partitioned one. Prints how many were right.
 */
public final class Elsewhere {
    private Elsewhere() {}

    public static void main(String[] arguments) throws Exception {
        List<String> topics = List.of(arguments).subList(1, arguments.length - 1);
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[0]).build()) {
            for (String topic : topics) {
                one(admin, topic);
            }
            partitioned(admin, arguments[arguments.length - 1]);
        }
        System.out.println((topics.size() + 1) + " right");
    }

    private static void one(PulsarAdmin admin, String topic) throws PulsarAdminException {
        admin.topics().createNonPartitionedTopic(topic, Map.of("a", "b"));
        check(admin.topics().getProperties(topic), Map.of("a", "b"));
        admin.topics().createSubscription(topic, "s", MessageId.earliest);
        check(admin.topics().getSubscriptions(topic), List.of("s"));
        admin.topicPolicies().setRetention(topic, new RetentionPolicies(10, 20));
        check(admin.topicPolicies().getRetention(topic), new RetentionPolicies(10, 20));
        admin.topics().updateSubscriptionProperties(topic, "s", Map.of("k", "v"));
        check(admin.topics().getSubscriptionProperties(topic, "s"), Map.of("k", "v"));
        admin.topics().resetCursor(topic, "s", MessageId.earliest);
        admin.topics().skipAllMessages(topic, "s");
        check(List.copyOf(admin.topics().getStats(topic).getSubscriptions().keySet()), List.of("s"));
        admin.topics().unload(topic);
        admin.topics().deleteSubscription(topic, "s");
        check(admin.topics().getSubscriptions(topic), List.of());
        admin.topics().delete(topic, true);
    }

    private static void partitioned(PulsarAdmin admin, String topic) throws PulsarAdminException {
        admin.topics().createPartitionedTopic(topic, 8);
        admin.topics().createSubscription(topic, "s", MessageId.earliest);
        check(admin.topics().getSubscriptions(topic), List.of("s"));
        List<String> having = new ArrayList<>();
        admin.topics().getPartitionedStats(topic, true).getPartitions().forEach((name, stats) -> {
            if (stats.getSubscriptions().containsKey("s")) {
                having.add(name);
            }
        });
        check(having.size(), 8);
        admin.topics().updateSubscriptionProperties(topic, "s", Map.of("k", "v"));
        check(admin.topics().getSubscriptionProperties(topic, "s"), Map.of("k", "v"));
        admin.topics().skipAllMessages(topic, "s");
        admin.topics().resetCursor(topic, "s", 1);
        admin.topics().truncate(topic);
        admin.topics().deleteSubscription(topic, "s");
        check(admin.topics().getSubscriptions(topic), List.of());
        check(admin.topics().terminatePartitionedTopic(topic).size(), 8);
        admin.topics().deletePartitionedTopic(topic, true);
    }

    private static void check(Object got, Object wanted) {
        if (!wanted.equals(got)) {
            throw new AssertionError("got " + got + ", wanted " + wanted);
        }
    }
}
