import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MessageIdImpl;
import org.apache.pulsar.common.policies.data.*;
import org.apache.pulsar.common.policies.data.impl.*;
import org.apache.pulsar.common.schema.SchemaInfo;
import org.apache.pulsar.common.schema.SchemaType;
import org.apache.pulsar.client.impl.schema.SchemaInfoImpl;

/**
 * What Apache's admin for Java sends: each call against a server that takes everything, a line of JSON for each request.
 *
 * <p>The lines are kept as tests/broker/admin/java_admin_bodies.jsonl; no value in them is the default one.
 */
public final class Bodies {
    private static final String NS = "public/default";
    private static final String T = "persistent://public/default/t";

    interface Call {
        void perform(PulsarAdmin admin) throws Exception;
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    public static void main(String[] arguments) throws Exception {
        List<String> lines = new ArrayList<>();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            if (!exchange.getRequestMethod().equals("GET")) {
                lines.add("{\"method\": " + quoted(exchange.getRequestMethod()) + ", \"path\": "
                        + quoted(exchange.getRequestURI().toString()) + ", \"body\": " + quoted(body) + "}");
            }
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
        try (PulsarAdmin admin = PulsarAdmin.builder()
                .serviceHttpUrl("http://127.0.0.1:" + server.getAddress().getPort()).build()) {
            for (Call call : calls()) {
                try {
                    call.perform(admin);
                } catch (Exception expected) { // an answer without a body is not what some calls expect
                    lines.size();
                }
            }
        } finally {
            server.stop(0);
        }
        lines.forEach(System.out::println);
    }

    private static List<Call> calls() {
        BacklogQuota size = BacklogQuota.builder().limitSize(12345).retentionPolicy(
                BacklogQuota.RetentionPolicy.consumer_backlog_eviction).build();
        BacklogQuota time = BacklogQuota.builder().limitTime(77).retentionPolicy(
                BacklogQuota.RetentionPolicy.producer_exception).build();
        DispatchRate dispatch = DispatchRate.builder().dispatchThrottlingRateInMsg(11).dispatchThrottlingRateInByte(22)
                .relativeToPublishRate(true).ratePeriodInSecond(3).build();
        PersistencePolicies persistence = new PersistencePolicies(1, 1, 1, 2.5);
        DelayedDeliveryPolicies delayed = DelayedDeliveryPolicies.builder().tickTime(2000).active(true)
                .maxDeliveryDelayInMillis(5000).build();
        InactiveTopicPolicies inactive = new InactiveTopicPolicies(
                InactiveTopicDeleteMode.delete_when_subscriptions_caught_up, 99, true);
        AutoTopicCreationOverride topics = AutoTopicCreationOverride.builder().allowAutoTopicCreation(true)
                .topicType("partitioned").defaultNumPartitions(4).build();
        AutoSubscriptionCreationOverride subscriptions = AutoSubscriptionCreationOverride.builder()
                .allowAutoSubscriptionCreation(true).build();
        Set<SubscriptionType> types = Set.of(SubscriptionType.Exclusive);
        MessageIdImpl at = new MessageIdImpl(3, 4, -1);
        Map<String, String> limits = new LinkedHashMap<>();
        limits.put("min_limit", "1");
        limits.put("usage_threshold", "80");
        SchemaInfo schema = SchemaInfoImpl.builder().name("s").type(SchemaType.JSON).properties(Map.of("a", "b"))
                .schema("{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}".getBytes(StandardCharsets.UTF_8)).build();
        return List.of(
                admin -> admin.tenants().createTenant("bodies", TenantInfo.builder().adminRoles(Set.of("r"))
                        .allowedClusters(Set.of("standalone")).build()),
                admin -> admin.namespaces().createNamespace("bodies/four", 4),
                admin -> admin.namespaces().createNamespace("bodies/cut", BundlesData.builder().numBundles(2)
                        .boundaries(List.of("0x00000000", "0x30000000", "0xffffffff")).build()),
                admin -> admin.topics().createNonPartitionedTopic(T, Map.of("x", "y")),
                admin -> admin.topics().createPartitionedTopic(T + "p", 3, Map.of("x", "y")),
                admin -> admin.topics().updatePartitionedTopic(T + "p", 4),
                admin -> admin.topics().createSubscription(T, "s", at),
                admin -> admin.topics().createSubscription(T, "s2", at, false, Map.of("x", "y")),
                admin -> admin.topics().resetCursor(T, "s", at, true),
                admin -> admin.topics().expireMessages(T, "s", at, true),
                admin -> admin.topics().analyzeSubscriptionBacklog(T, "s", java.util.Optional.of(at)),
                admin -> admin.topics().updateSubscriptionProperties(T, "s", Map.of("p", "q")),
                admin -> admin.topics().updateProperties(T, Map.of("k", "v")),
                admin -> admin.topics().getBacklogSizeByMessageId(T, at),
                admin -> admin.topics().triggerOffload(T, at),
                admin -> admin.namespaces().setRetention(NS, new RetentionPolicies(66, 77)),
                admin -> admin.namespaces().setBacklogQuota(NS, size, BacklogQuota.BacklogQuotaType.destination_storage),
                admin -> admin.namespaces().setBacklogQuota(NS, time, BacklogQuota.BacklogQuotaType.message_age),
                admin -> admin.namespaces().setPersistence(NS, persistence),
                admin -> admin.namespaces().setDispatchRate(NS, dispatch),
                admin -> admin.namespaces().setSubscriptionDispatchRate(NS, dispatch),
                admin -> admin.namespaces().setReplicatorDispatchRate(NS, dispatch),
                admin -> admin.namespaces().setPublishRate(NS, new PublishRate(33, 44)),
                admin -> admin.namespaces().setSubscribeRate(NS, new SubscribeRate(5, 40)),
                admin -> admin.namespaces().setDelayedDeliveryMessages(NS, delayed),
                admin -> admin.namespaces().setInactiveTopicPolicies(NS, inactive),
                admin -> admin.namespaces().setAutoTopicCreation(NS, topics),
                admin -> admin.namespaces().setAutoSubscriptionCreation(NS, subscriptions),
                admin -> admin.namespaces().setSubscriptionTypesEnabled(NS, types),
                admin -> admin.namespaces().setNamespaceMessageTTL(NS, 88),
                admin -> admin.namespaces().setDeduplicationStatus(NS, true),
                admin -> admin.namespaces().setMaxProducersPerTopic(NS, 9),
                admin -> admin.namespaces().setSchemaCompatibilityStrategy(NS, SchemaCompatibilityStrategy.FORWARD),
                admin -> admin.namespaces().setSubscriptionAuthMode(NS, SubscriptionAuthMode.Prefix),
                admin -> admin.namespaces().setIsAllowAutoUpdateSchema(NS, false),
                admin -> admin.namespaces().setOffloadThresholdInSeconds(NS, 12),
                admin -> admin.namespaces().grantPermissionOnNamespace(NS, "who", Set.of(AuthAction.produce)),
                admin -> admin.namespaces().grantPermissionOnSubscription(NS, "s", Set.of("who")),
                admin -> admin.namespaces().setProperties(NS, Map.of("k", "v")),
                admin -> admin.namespaces().splitNamespaceBundle("bodies/four", "0x00000000_0x40000000", true, null),
                admin -> admin.topicPolicies().setRetention(T, new RetentionPolicies(66, 77)),
                admin -> admin.topicPolicies().setBacklogQuota(T, size, BacklogQuota.BacklogQuotaType.destination_storage),
                admin -> admin.topicPolicies().setPersistence(T, persistence),
                admin -> admin.topicPolicies().setDispatchRate(T, dispatch),
                admin -> admin.topicPolicies().setSubscriptionDispatchRate(T, dispatch),
                admin -> admin.topicPolicies().setSubscriptionDispatchRate(T, "s", dispatch),
                admin -> admin.topicPolicies().setReplicatorDispatchRate(T, dispatch),
                admin -> admin.topicPolicies().setPublishRate(T, new PublishRate(33, 44)),
                admin -> admin.topicPolicies().setSubscribeRate(T, new SubscribeRate(5, 40)),
                admin -> admin.topicPolicies().setDelayedDeliveryPolicy(T, delayed),
                admin -> admin.topicPolicies().setInactiveTopicPolicies(T, inactive),
                admin -> admin.topicPolicies().setAutoSubscriptionCreation(T, subscriptions),
                admin -> admin.topicPolicies().setSubscriptionTypesEnabled(T, types),
                admin -> admin.topicPolicies().setMessageTTL(T, 88),
                admin -> admin.topicPolicies().setDeduplicationStatus(T, true),
                admin -> admin.topicPolicies().setMaxUnackedMessagesOnConsumer(T, 9),
                admin -> admin.topicPolicies().setCompactionThreshold(T, 1234),
                admin -> admin.topicPolicies().setSchemaCompatibilityStrategy(T, SchemaCompatibilityStrategy.FORWARD),
                admin -> admin.schemas().createSchema(T + "schema", schema),
                admin -> admin.schemas().testCompatibility(T + "schema", schema),
                admin -> admin.clusters().createCluster("bodies", ClusterData.builder().serviceUrl("http://h:1")
                        .serviceUrlTls("https://h:2").brokerServiceUrl("pulsar://h:3").brokerServiceUrlTls("pulsar+ssl://h:4")
                        .listenerName("l").build()),
                admin -> admin.clusters().createFailureDomain("standalone", "d",
                        FailureDomain.builder().brokers(Set.of("b:1")).build()),
                admin -> admin.clusters().createNamespaceIsolationPolicy("standalone", "i", NamespaceIsolationData.builder()
                        .namespaces(List.of("public/d.*")).primary(List.of("b:.*")).secondary(List.of("c:.*"))
                        .autoFailoverPolicy(AutoFailoverPolicyData.builder()
                                .policyType(AutoFailoverPolicyType.min_available).parameters(limits).build()).build()),
                admin -> admin.resourceQuotas().setDefaultResourceQuota(quota()),
                admin -> admin.bookies().updateBookieRackInfo("127.0.0.1:3181", "g",
                        BookieInfo.builder().rack("/r").hostname("h").build()));
    }

    private static ResourceQuota quota() {
        ResourceQuota quota = new ResourceQuota();
        quota.setMsgRateIn(1.5);
        quota.setMsgRateOut(2.5);
        quota.setBandwidthIn(3.5);
        quota.setBandwidthOut(4.5);
        quota.setMemory(5.5);
        quota.setDynamic(false);
        return quota;
    }
}
