import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.admin.cli.PulsarAdminTool;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/**
 * Apache's pulsar-admin in one JVM: everyday actions of an operator, each checked by what it did.
 *
 * <p>Arguments: the URL of the web server, the URL of the broker. An action is a command line; its effect is looked for with another
 * command, over plain HTTP, or by what a client may then do. Prints a line for each, and what failed at the end (exit code 1).
 */
public final class Operator {
    private static final String T = "java-admin";
    private static final String NS = T + "/everyday";
    private static final PrintStream SCREEN = System.out;

    private final String web;
    private final String broker;
    private final PulsarClient client;
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final List<String> failed = new ArrayList<>();
    private final Tool tool;
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private int done;

    /** The command line itself, whose run is not public. */
    private static final class Tool extends PulsarAdminTool {
        Tool(Properties properties) throws Exception {
            super(properties);
        }

        boolean perform(String[] arguments) {
            return run(arguments);
        }
    }

    private Operator(String web, String broker) throws Exception {
        this.web = web;
        this.broker = broker;
        PrintStream captured = new PrintStream(written, true, StandardCharsets.UTF_8) {
            @Override
            public void close() { // broker-stats closes what it writes to
                flush();
            }
        };
        System.setOut(captured);
        System.setErr(captured);
        Properties properties = new Properties();
        properties.setProperty("webServiceUrl", web);
        tool = new Tool(properties);
        client = PulsarClient.builder().serviceUrl(broker).operationTimeout(60, TimeUnit.SECONDS).build();
    }

    public static void main(String[] arguments) throws Exception {
        Operator operator = new Operator(arguments[0], arguments[1]);
        operator.clustersAndTenants();
        operator.namespaces();
        operator.limits();
        operator.policies();
        operator.missing();
        operator.brokersAndBookies();
        operator.backlogs();
        operator.shownAndSplit();
        operator.schemas();
        operator.compactedAndTerminated();
        operator.end();
        operator.client.close();
        SCREEN.println(operator.done + " actions, " + operator.failed.size() + " failed");
        operator.failed.forEach(SCREEN::println);
        System.exit(operator.failed.isEmpty() ? 0 : 1);
    }

    // ---- Schemas, and what becomes of topics

    private static String schemaFile(String type, String fields) throws Exception {
        Path file = Files.createTempFile("schema", ".json");
        file.toFile().deleteOnExit();
        String definition = "{\\\"type\\\":\\\"record\\\",\\\"name\\\":\\\"R\\\",\\\"fields\\\":[" + fields.replace("'", "\\\"") + "]}";
        return Files.writeString(file, "{\"type\":\"" + type + "\",\"schema\":\"" + definition + "\",\"properties\":{\"owner\":\"me\"}}").toString();
    }

    private void schemas() throws Exception {
        String users = topic("users");
        String first = schemaFile("AVRO", "{'name':'a','type':'int'}");
        String second = schemaFile("AVRO", "{'name':'a','type':'int'},{'name':'b','type':'int','default':0}");
        String unlike = schemaFile("AVRO", "{'name':'a','type':'string'}");
        refused("schemas get " + users, "Schema not found");
        act("schemas upload " + users + " -f " + first,
                shows("schemas get " + users, "\"version\":0", "\"type\":\"AVRO\"", "\"owner\":\"me\""));
        act("schemas upload " + users + " -f " + second, shows("schemas get " + users, "\"version\":1"));
        act("schemas upload " + users + " -f " + first, shows("schemas get " + users, "\"version\":1"));
        refused("schemas upload " + users + " -f " + unlike, "schema");
        refused("schemas upload " + users + " -f " + schemaFile("NIX", ""), "");
        act("schemas get " + users + " --version 0", hides("schemas get " + users + " --version 0", "\"b\""));
        refused("schemas get " + users + " --version 7", "Schema not found");
        act("schemas get " + users + " --all-version", shows("schemas get " + users + " -a", "\\\"int\\\"}]}", "\\\"default\\\":0"));
        act("schemas metadata " + users, shows("schemas metadata " + users, "\"version\":1", "\"index\""));
        producer("users").close(); // makes the topic: the schema may be there before it
        act("topicPolicies set-schema-compatibility-strategy -s FORWARD " + users,
                () -> run("schemas upload " + users + " -f " + schemaFile("AVRO",
                        "{'name':'a','type':'int'},{'name':'b','type':'int'},{'name':'c','type':'int'}")).isEmpty());
        act("schemas delete " + users, isRefused("schemas get " + users, "Schema not found"));
        act("schemas upload " + users + " -f " + unlike, shows("schemas get " + users, "\"version\":4"));
        act("schemas delete --force " + users, isRefused("schemas get " + users, "Schema not found"));
        act("schemas upload " + users + " -f " + unlike, shows("schemas get " + users, "\"version\":0"));
        act("namespaces set-schema-validation-enforce --enable " + NS,
                fails(() -> producer("users"), "IncompatibleSchema"));
        act("namespaces set-schema-validation-enforce --disable " + NS, () -> {
            producer("users").close();
            return true;
        });
    }

    private void compactedAndTerminated() throws Exception {
        String ended = topic("ended");
        try (Producer<byte[]> producer = producer("ended")) {
            for (int i = 0; i < 6; i++) {
                producer.newMessage().key("k" + i % 2).value(new byte[] {(byte) i}).send();
            }
            act("topics compact " + ended, shows("topics compaction-status -w " + ended, "success"));
            act("topics terminate " + ended, fails(() -> producer.send(new byte[1]), "erminated"));
        }
        act("topics last-message-id " + ended, shows("topics last-message-id " + ended, "\"entryId\":5"));
        String parts = topic("ended-parts");
        act("topics create-partitioned-topic -p 2 " + parts, shows("topics get-partitioned-topic-metadata " + parts, "2"));
        act("topics partitioned-terminate " + parts, fails(() -> producer("ended-parts"), "erminated"));
        refused("topics terminate " + parts, "not allowed");
        act("topics delete-partitioned-topic " + parts, hides("topics list " + NS, "ended-parts"));
    }

    // ---- What an action is, and how its effect is seen

    /** What the command wrote; an AssertionError when it says that it failed. */
    private String run(String line) {
        written.reset();
        boolean ok = tool.perform(line.split(" +"));
        String output = written.toString(StandardCharsets.UTF_8).strip();
        if (!ok) {
            throw new AssertionError("failed: " + output);
        }
        return output;
    }

    private void act(String line, Callable<Boolean> effect) {
        done++;
        try {
            String output = run(line);
            if (effect.call()) {
                SCREEN.println("ok      " + line);
                return;
            }
            fail(line, "no effect; it wrote " + output + "; then there was " + written);
        } catch (Throwable wrong) {
            fail(line, wrong.toString());
        }
    }

    /** The command is refused, and what it writes has this in it. */
    private void refused(String line, String reason) {
        done++;
        written.reset();
        boolean ok = tool.perform(line.split(" +"));
        String output = written.toString(StandardCharsets.UTF_8);
        if (!ok && output.contains(reason)) {
            SCREEN.println("refused " + line);
        } else {
            fail(line, "expected a refusal with " + reason + ", not " + output);
        }
    }

    private void fail(String line, String why) {
        SCREEN.println("FAILED  " + line + ": " + why);
        failed.add(line + ": " + why);
    }

    /** Another command writes this. */
    private Callable<Boolean> shows(String line, String... parts) {
        return () -> {
            String output = run(line).replaceAll("\\s+", "");
            return Arrays.stream(parts).allMatch(part -> output.contains(part.replaceAll("\\s+", "")));
        };
    }

    private Callable<Boolean> isRefused(String line, String reason) {
        return () -> {
            try {
                run(line);
                return false;
            } catch (AssertionError refusal) {
                return refusal.getMessage().contains(reason);
            }
        };
    }

    private Callable<Boolean> hides(String line, String part) {
        return () -> !run(line).contains(part);
    }

    private Callable<Boolean> is(String line, String whole) {
        return () -> run(line).equals(whole);
    }

    /** Over HTTP, without Apache's classes. */
    private Callable<Boolean> answers(String path, int status, String part) {
        return () -> {
            HttpRequest request = HttpRequest.newBuilder(URI.create(web + path)).build();
            HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
            return answer.statusCode() == status && answer.body().contains(part);
        };
    }

    /** What a client does is refused with an error that says this. */
    private static Callable<Boolean> fails(Callable<?> work, String reason) {
        return () -> {
            try {
                work.call();
                return false;
            } catch (Exception refusal) {
                return String.valueOf(refusal).contains(reason);
            }
        };
    }

    @SafeVarargs
    private static Callable<Boolean> all(Callable<Boolean>... effects) {
        return () -> {
            for (Callable<Boolean> effect : effects) {
                if (!effect.call()) {
                    return false;
                }
            }
            return true;
        };
    }

    private static String topic(String name) {
        return "persistent://" + NS + "/" + name;
    }

    private Producer<byte[]> producer(String name) throws Exception {
        return client.newProducer().topic(topic(name)).create();
    }

    private Consumer<byte[]> consumer(String name, String subscription, SubscriptionType type) throws Exception {
        return client.newConsumer().topic(topic(name)).subscriptionName(subscription).subscriptionType(type)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    /** The first is let in, and the second is not until the first is gone. */
    private static Callable<Boolean> onlyOne(Callable<? extends AutoCloseable> open, Callable<? extends AutoCloseable> more,
            String reason) {
        return () -> {
            try (AutoCloseable first = open.call()) {
                return fails(() -> {
                    more.call().close();
                    return null;
                }, reason).call();
            }
        };
    }

    // ---- The actions

    private void clustersAndTenants() {
        act("clusters list", shows("clusters list", "standalone"));
        act("clusters create java-c --url http://there:8080 --broker-url pulsar://there:6650",
                shows("clusters get java-c", "http://there:8080", "pulsar://there:6650"));
        act("clusters update java-c --url http://elsewhere:8080 --broker-url pulsar://there:6650",
                answers("/admin/v2/clusters/java-c", 200, "http://elsewhere:8080"));
        act("clusters update-peer-clusters java-c --peer-clusters standalone", shows("clusters get-peer-clusters java-c", "standalone"));
        act("clusters create-failure-domain java-c --domain-name d --broker-list b:8080",
                shows("clusters list-failure-domains java-c", "b:8080"));
        act("clusters update-failure-domain java-c --domain-name d --broker-list c:8080",
                shows("clusters get-failure-domain java-c --domain-name d", "c:8080"));
        act("clusters delete-failure-domain java-c --domain-name d", hides("clusters list-failure-domains java-c", "c:8080"));
        act("clusters delete java-c", all(hides("clusters list", "java-c"), answers("/admin/v2/clusters/java-c", 404, "does not exist")));
        refused("clusters get java-c", "Cluster does not exist");
        refused("clusters create standalone --url http://there:8080", "already exists");

        act("tenants create " + T + " --admin-roles a,b --allowed-clusters standalone", shows("tenants get " + T, "a", "b", "standalone"));
        act("tenants list", shows("tenants list", T));
        act("tenants update " + T + " --admin-roles c --allowed-clusters standalone",
                all(shows("tenants get " + T, "c"), hides("tenants get " + T, "\"b\"")));
        refused("tenants create " + T + " --allowed-clusters standalone", "Tenant already exist");
        refused("tenants create other --allowed-clusters nowhere", "Clusters do not exist");
        refused("tenants get nobody", "Tenant does not exist");
        act("tenants create java-gone --allowed-clusters standalone", shows("tenants list", "java-gone"));
        act("tenants delete java-gone", hides("tenants list", "java-gone"));
    }

    private void namespaces() {
        act("namespaces create " + NS + " --bundles 4", shows("namespaces bundles " + NS, "0x40000000", "numBundles\":4"));
        act("namespaces list " + T, shows("namespaces list " + T, NS));
        act("namespaces policies " + NS, shows("namespaces policies " + NS, "replication_clusters", "standalone"));
        refused("namespaces create " + NS, "already exists");
        refused("namespaces create nobody/n", "Tenant does not exist");
        refused("namespaces policies " + T + "/none", "Namespace does not exist");
        refused("tenants delete " + T, "still has active namespaces");
        act("namespaces create " + T + "/gone", shows("namespaces list " + T, "/gone"));
        act("namespaces delete " + T + "/gone", hides("namespaces list " + T, "/gone"));
        act("topics create " + topic("t"), shows("namespaces topics " + NS, topic("t")));
        refused("namespaces delete " + NS, "Cannot delete non empty namespace");
        act("namespaces set-property " + NS + " -k owner -v team", shows("namespaces get-property " + NS + " -k owner", "team"));
        act("namespaces set-properties " + NS + " -p a=b,c=d", shows("namespaces get-properties " + NS, "owner", "a", "c"));
        act("namespaces remove-property " + NS + " -k owner", hides("namespaces get-properties " + NS, "owner"));
        act("namespaces clear-properties " + NS, is("namespaces get-properties " + NS, "{ }"));
        act("namespaces grant-permission " + NS + " --role r --actions produce,consume", shows("namespaces permissions " + NS, "r", "consume"));
        act("namespaces revoke-permission " + NS + " --role r", hides("namespaces permissions " + NS, "produce"));
        act("namespaces grant-subscription-permission " + NS + " --subscription s --roles r",
                shows("namespaces subscription-permission " + NS, "s", "r"));
        act("namespaces revoke-subscription-permission " + NS + " --subscription s --role r",
                hides("namespaces subscription-permission " + NS, "\"s\""));
        act("namespaces set-clusters " + NS + " --clusters standalone", shows("namespaces get-clusters " + NS, "standalone"));
        refused("namespaces set-clusters " + NS + " --clusters nowhere", "Invalid cluster id");
        act("namespaces unload " + NS, () -> {
            try (Producer<byte[]> producer = producer("t")) {
                return producer.send(new byte[1]) != null;
            }
        });
        act("namespaces set-anti-affinity-group " + NS + " -g apart", shows("namespaces get-anti-affinity-group " + NS, "apart"));
        act("namespaces delete-anti-affinity-group " + NS, hides("namespaces get-anti-affinity-group " + NS, "apart"));
        act("ns-isolation-policy set standalone p --namespaces x/.* --primary broker.* --auto-failover-policy-type min_available"
                + " --auto-failover-policy-params min_limit=1,usage_threshold=80", shows("ns-isolation-policy get standalone p", "x/.*"));
        act("ns-isolation-policy list standalone", shows("ns-isolation-policy list standalone", "broker.*"));
        act("ns-isolation-policy delete standalone p", hides("ns-isolation-policy list standalone", "broker.*"));
    }

    private void limits() {
        act("namespaces set-max-producers-per-topic " + NS + " -p 1",
                all(is("namespaces get-max-producers-per-topic " + NS, "1"), onlyOne(() -> producer("p"), () -> producer("p"), "max producers")));
        act("namespaces remove-max-producers-per-topic " + NS, () -> {
            try (Producer<byte[]> one = producer("p"); Producer<byte[]> two = producer("p")) {
                return one.isConnected() && two.isConnected();
            }
        });
        act("namespaces set-max-consumers-per-topic " + NS + " -c 1", all(is("namespaces get-max-consumers-per-topic " + NS, "1"),
                onlyOne(() -> consumer("c", "s", SubscriptionType.Shared), () -> consumer("c", "other", SubscriptionType.Shared), "max consumers")));
        act("namespaces remove-max-consumers-per-topic " + NS, is("namespaces get-max-consumers-per-topic " + NS, "null"));
        act("namespaces set-max-consumers-per-subscription " + NS + " -c 1", all(is("namespaces get-max-consumers-per-subscription " + NS, "1"),
                onlyOne(() -> consumer("c", "s", SubscriptionType.Shared), () -> consumer("c", "s", SubscriptionType.Shared), "max consumers")));
        act("namespaces remove-max-consumers-per-subscription " + NS, is("namespaces get-max-consumers-per-subscription " + NS, "null"));
        act("namespaces set-max-subscriptions-per-topic " + NS + " -m 1", all(is("namespaces get-max-subscriptions-per-topic " + NS, "1"),
                onlyOne(() -> consumer("s", "one", SubscriptionType.Shared), () -> consumer("s", "two", SubscriptionType.Shared), "maximum number of subscriptions")));
        act("namespaces remove-max-subscriptions-per-topic " + NS, is("namespaces get-max-subscriptions-per-topic " + NS, "null"));
        act("namespaces set-max-topics-per-namespace " + NS + " -t 1",
                all(is("namespaces get-max-topics-per-namespace " + NS, "1"), () -> {
                    refused("topics create " + topic("too-many"), "maximum number of topics");
                    return true;
                }));
        act("namespaces remove-max-topics-per-namespace " + NS, shows("namespaces policies " + NS, "replication_clusters"));
        act("namespaces set-subscription-types-enabled " + NS + " -t Exclusive", all(
                shows("namespaces get-subscription-types-enabled " + NS, "Exclusive"),
                fails(() -> consumer("types", "s", SubscriptionType.Shared), "sub type")));
        act("namespaces remove-subscription-types-enabled " + NS, () -> {
            try (Consumer<byte[]> shared = consumer("types", "s", SubscriptionType.Shared)) {
                return shared.isConnected();
            }
        });
        act("namespaces set-max-unacked-messages-per-consumer " + NS + " -c 7", is("namespaces get-max-unacked-messages-per-consumer " + NS, "7"));
        act("namespaces remove-max-unacked-messages-per-consumer " + NS, is("namespaces get-max-unacked-messages-per-consumer " + NS, "null"));
        act("namespaces set-max-unacked-messages-per-subscription " + NS + " -c 8", is("namespaces get-max-unacked-messages-per-subscription " + NS, "8"));
        act("namespaces remove-max-unacked-messages-per-subscription " + NS, is("namespaces get-max-unacked-messages-per-subscription " + NS, "null"));
    }

    private void policies() {
        act("namespaces set-auto-topic-creation " + NS + " --disable", all(shows("namespaces get-auto-topic-creation " + NS, "false"),
                fails(() -> producer("made-by-nobody"), "TopicDoesNotExist")));
        act("namespaces set-auto-topic-creation " + NS + " --enable --type partitioned --num-partitions 3", () -> {
            producer("parts").close();
            return run("topics get-partitioned-topic-metadata " + topic("parts")).contains("3");
        });
        act("namespaces remove-auto-topic-creation " + NS, is("namespaces get-auto-topic-creation " + NS, "null"));
        act("namespaces set-auto-subscription-creation " + NS, all(
                shows("namespaces get-auto-subscription-creation " + NS, "false"),
                fails(() -> consumer("t", "by-nobody", SubscriptionType.Shared), "oes not exist")));
        act("namespaces remove-auto-subscription-creation " + NS, () -> {
            try (Consumer<byte[]> made = consumer("t", "by-itself", SubscriptionType.Shared)) {
                return made.isConnected();
            }
        });
        act("namespaces set-encryption-required " + NS + " --enable", () -> {
            try (PulsarClient hasty = PulsarClient.builder().serviceUrl(broker).operationTimeout(2, TimeUnit.SECONDS).build()) {
                return fails(() -> hasty.newProducer().topic(topic("t")).create(), "").call(); // it would try again for a minute
            }
        });
        act("namespaces set-encryption-required " + NS + " --disable", () -> {
            try (Producer<byte[]> plain = producer("t")) {
                return plain.isConnected();
            }
        });
        act("namespaces set-is-allow-auto-update-schema " + NS + " --disable", all(
                is("namespaces get-is-allow-auto-update-schema " + NS, "false"),
                fails(() -> client.newProducer(Schema.STRING).topic(topic("schema")).create(), "chema")));
        act("namespaces set-is-allow-auto-update-schema " + NS + " --enable", () -> {
            try (Producer<String> typed = client.newProducer(Schema.STRING).topic(topic("schema")).create()) {
                return typed.isConnected();
            }
        });
        act("namespaces set-schema-validation-enforce " + NS + " --enable", all(is("namespaces get-schema-validation-enforce " + NS, "true"),
                fails(() -> producer("schema"), "chema")));
        act("namespaces set-schema-validation-enforce " + NS + " --disable", () -> {
            try (Producer<byte[]> bare = producer("schema")) {
                return bare.isConnected();
            }
        });
        act("namespaces set-schema-compatibility-strategy " + NS + " -c ALWAYS_INCOMPATIBLE", all(
                shows("namespaces get-schema-compatibility-strategy " + NS, "ALWAYS_INCOMPATIBLE"),
                fails(() -> client.newProducer(Schema.INT64).topic(topic("schema")).create(), "chema")));
        act("namespaces set-schema-compatibility-strategy " + NS + " -c UNDEFINED",
                shows("namespaces get-schema-compatibility-strategy " + NS, "UNDEFINED"));
        act("namespaces set-message-ttl " + NS + " -ttl 77", is("namespaces get-message-ttl " + NS, "77"));
        act("namespaces remove-message-ttl " + NS, is("namespaces get-message-ttl " + NS, "null"));
        act("namespaces set-retention " + NS + " -s 100M -t 2h", shows("namespaces get-retention " + NS, "120", "100"));
        act("namespaces remove-retention " + NS, is("namespaces get-retention " + NS, "null"));
        act("namespaces set-backlog-quota " + NS + " -l 10M -p producer_exception",
                shows("namespaces get-backlog-quotas " + NS, "destination_storage", "10485760", "producer_exception"));
        act("namespaces set-backlog-quota " + NS + " -lt 1h -p consumer_backlog_eviction -t message_age",
                shows("namespaces get-backlog-quotas " + NS, "message_age", "3600"));
        act("namespaces remove-backlog-quota " + NS, hides("namespaces get-backlog-quotas " + NS, "destination_storage"));
        act("namespaces remove-backlog-quota " + NS + " -t message_age", hides("namespaces get-backlog-quotas " + NS, "message_age"));
        act("namespaces set-persistence " + NS + " -e 1 -w 1 -a 1 -r 2.5", shows("namespaces get-persistence " + NS, "2.5"));
        refused("namespaces set-persistence " + NS + " -e 1 -w 2 -a 1 -r 1", "Bookkeeper Ensemble (1) >= WriteQuorum (2)");
        act("namespaces remove-persistence " + NS, is("namespaces get-persistence " + NS, "null"));
        act("namespaces set-publish-rate " + NS + " -m 1000", shows("namespaces get-publish-rate " + NS, "1000"));
        act("namespaces remove-publish-rate " + NS, is("namespaces get-publish-rate " + NS, "null"));
        act("namespaces set-dispatch-rate " + NS + " -md 1000", shows("namespaces get-dispatch-rate " + NS, "1000"));
        act("namespaces remove-dispatch-rate " + NS, is("namespaces get-dispatch-rate " + NS, "null"));
        act("namespaces set-subscription-dispatch-rate " + NS + " -md 500", shows("namespaces get-subscription-dispatch-rate " + NS, "500"));
        act("namespaces remove-subscription-dispatch-rate " + NS, is("namespaces get-subscription-dispatch-rate " + NS, "null"));
        act("namespaces set-subscribe-rate " + NS + " -sr 5 -st 10", shows("namespaces get-subscribe-rate " + NS, "5", "10"));
        act("namespaces remove-subscribe-rate " + NS, is("namespaces get-subscribe-rate " + NS, "null"));
        act("namespaces set-subscription-expiration-time " + NS + " -t 90", is("namespaces get-subscription-expiration-time " + NS, "90"));
        act("namespaces remove-subscription-expiration-time " + NS, is("namespaces get-subscription-expiration-time " + NS, "null"));
        act("namespaces set-inactive-topic-policies " + NS + " -e -t 1h -m delete_when_subscriptions_caught_up",
                shows("namespaces get-inactive-topic-policies " + NS, "3600", "delete_when_subscriptions_caught_up"));
        act("namespaces remove-inactive-topic-policies " + NS, is("namespaces get-inactive-topic-policies " + NS, "null"));
    }

    /** Of features that are not there: said so, and nothing is stored. */
    private void missing() {
        refused("namespaces set-offload-threshold " + NS + " -s 10M", "tiered storage is missing");
        refused("namespaces set-offload-policies " + NS + " -d aws-s3 -b b -r r", "tiered storage is missing");
        refused("namespaces set-replicator-dispatch-rate " + NS + " -md 10", "geo-replication is missing");
        refused("namespaces set-resource-group " + NS + " -rgn g", "resource groups are missing");
        refused("namespaces set-bookie-affinity-group " + NS + " -pg a", "is missing");
    }

    private void brokersAndBookies() {
        act("brokers list standalone", shows("brokers list standalone", web.substring("http://".length())));
        act("brokers leader-broker", shows("brokers leader-broker", "brokerId", web));
        act("brokers healthcheck", is("brokers healthcheck", "ok"));
        act("brokers version", () -> !run("brokers version").isEmpty());
        act("brokers namespaces standalone --url " + web.substring("http://".length()),
                shows("brokers namespaces standalone --url " + web.substring("http://".length()), NS, "is_active"));
        act("brokers get-internal-config", shows("brokers get-internal-config", "/ledgers"));
        act("brokers list-dynamic-config", shows("brokers list-dynamic-config", "maxTenants"));
        act("brokers get-runtime-config", shows("brokers get-runtime-config", "clusterName"));
        act("brokers update-dynamic-config --config maxTenants --value 1", all(
                shows("brokers get-all-dynamic-config", "maxTenants", "1"), () -> {
                    refused("tenants create java-beyond --allowed-clusters standalone", "maximum number of tenants");
                    return true;
                }));
        act("brokers delete-dynamic-config --config maxTenants", hides("brokers get-all-dynamic-config", "maxTenants"));
        refused("brokers update-dynamic-config --config clusterName --value x", "non-dynamic");
        act("brokers backlog-quota-check", shows("brokers healthcheck", "ok"));
        act("broker-stats topics", shows("broker-stats topics", topic("t")));
        act("broker-stats monitoring-metrics", shows("broker-stats monitoring-metrics", "brk_in_rate", NS));
        act("broker-stats load-report", () -> !run("broker-stats load-report").isEmpty());
        act("bookies list-bookies", shows("bookies list-bookies", "bookieId"));
        act("bookies set-bookie-rack --bookie b:3181 --group g --hostname b --rack /r1", shows("bookies get-bookie-rack --bookie b:3181", "/r1"));
        act("bookies racks-placement", shows("bookies racks-placement", "b:3181", "/r1"));
        act("bookies delete-bookie-rack --bookie b:3181", hides("bookies racks-placement", "b:3181"));
        act("resource-quotas set --namespace " + NS + " --bundle 0x00000000_0x40000000 -mi 7 -mo 8 -bi 9 -bo 10 -mem 11",
                shows("resource-quotas get --namespace " + NS + " --bundle 0x00000000_0x40000000", "7", "11"));
        act("resource-quotas reset-namespace-bundle-quota --namespace " + NS + " --bundle 0x00000000_0x40000000",
                shows("resource-quotas get --namespace " + NS + " --bundle 0x00000000_0x40000000", "msgRateIn", "40"));
    }

    private void backlogs() {
        try (Consumer<byte[]> consumer = consumer("backlog", "s", SubscriptionType.Shared); Producer<byte[]> producer = producer("backlog")) {
            for (int i = 0; i < 10; i++) {
                producer.send(new byte[1]);
            }
        } catch (Exception wrong) {
            fail("a backlog", wrong.toString());
        }
        act("namespaces clear-backlog " + NS + " --sub s --force", all(
                shows("topics stats " + topic("backlog"), "\"msgBacklog\":0")));
        act("namespaces unsubscribe " + NS + " --sub s", hides("topics subscriptions " + topic("backlog"), "s"));
    }

    /** Properties come in a header whose name Java compares letter by letter; a standalone splits its bundles. */
    private void shownAndSplit() {
        try (Consumer<byte[]> consumer = consumer("shown", "s", SubscriptionType.Shared);
                Producer<byte[]> producer = client.newProducer().topic(topic("shown")).enableBatching(false).create()) {
            producer.newMessage().property("color", "blue").value(new byte[1]).send();
        } catch (Exception wrong) {
            fail("a message with a property", wrong.toString());
        }
        String peek = "topics peek-messages " + topic("shown") + " -s s";
        act(peek, shows(peek, "color", "blue"));
        act("namespaces split-bundle " + NS + " -b 0x00000000_0x40000000 -u", shows("namespaces bundles " + NS, "0x20000000"));
        act("namespaces unload " + NS + " -b 0x00000000_0x20000000", shows("brokers healthcheck", "ok"));
    }

    private void end() throws Exception {
        for (String name : run("namespaces topics " + NS).split("\\s+")) {
            if (!name.isEmpty() && !name.contains("-partition-")) {
                run("topics delete " + name + " --force");
            }
        }
        run("topics delete-partitioned-topic " + topic("parts") + " --force");
        act("namespaces delete " + NS, hides("namespaces list " + T, NS));
        act("tenants delete " + T, all(hides("tenants list", T), answers("/admin/v2/tenants/" + T, 404, "does not exist")));
    }
}
