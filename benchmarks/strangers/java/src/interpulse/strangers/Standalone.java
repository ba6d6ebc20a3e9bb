package interpulse.strangers;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.common.configuration.FieldContext;

/** One standalone of ours: its directory, its ports, and the process, with what a test has written in a ServiceConfiguration. */
public final class Standalone {
    private static final long READY_SECONDS_MAX = 60;
    private static final Set<String> PLACES = Set.of(
            "metadataStoreUrl", "configurationMetadataStoreUrl", "zookeeperServers", "configurationStoreServers",
            "globalZookeeperServers", "brokerServicePort", "brokerServicePortTls", "webServicePort", "webServicePortTls",
            "bindAddress", "bindAddresses", "advertisedAddress", "bookkeeperMetadataServiceUri",
            "allowOverrideEntryFilters", "managedLedgerDefaultEnsembleSize", "managedLedgerDefaultWriteQuorum", "managedLedgerDefaultAckQuorum");
    /** Places, of which another process has its own, and filters of entries, which a standalone of ours refuses at its start. */

    private static final List<Process> running = new ArrayList<>();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> running.forEach(Process::destroyForcibly)));
    }

    private final Path directory;
    private final int[] ports = new int[4];
    private boolean overTls;
    private Process process;

    public Standalone(Path scratch) throws IOException {
        directory = Files.createTempDirectory(scratch, "standalone-");
        for (int index = 0; index < ports.length; index++) {
            try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                ports[index] = free.getLocalPort();
            }
        }
    }

    public int brokerPort() {
        return ports[0];
    }

    public int webPort() {
        return ports[1];
    }

    public Integer brokerPortTls() {
        return overTls ? ports[2] : null;
    }

    public Integer webPortTls() {
        return overTls ? ports[3] : null;
    }

    public String brokerUrl() {
        return "pulsar://localhost:" + brokerPort();
    }

    public String webUrl() {
        return "http://localhost:" + webPort();
    }

    public String brokerUrlTls() {
        return overTls ? "pulsar+ssl://localhost:" + brokerPortTls() : null;
    }

    public String webUrlTls() {
        return overTls ? "https://localhost:" + webPortTls() : null;
    }

    public void start(ServiceConfiguration conf) throws Exception {
        overTls = conf.getTlsCertificateFilePath() != null && !conf.getTlsCertificateFilePath().isEmpty();
        Path file = directory.resolve("standalone.conf");
        Files.write(file, lines(conf));
        Path ready = directory.resolve("ready");
        Files.deleteIfExists(ready);
        process = new ProcessBuilder(System.getProperty("strangers.pulsar"), "standalone", "--config", file.toString(),
                "--data-dir", directory.resolve("data").toString(), "--json-ready", ready.toString())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("log").toFile()))
                .start();
        running.add(process);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(READY_SECONDS_MAX);
        while (!Files.exists(ready)) {
            if (process.waitFor(20, TimeUnit.MILLISECONDS) || System.nanoTime() > deadline) {
                throw new IllegalStateException("the standalone did not start: " + lastLine());
            }
        }
    }

    public void stop() throws InterruptedException {
        if (process != null) {
            process.destroy();
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
            running.remove(process);
            process = null;
        }
    }

    public void remove() throws Exception {
        stop();
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path each : all.sorted((one, other) -> other.compareTo(one)).collect(Collectors.toList())) {
                Files.delete(each);
            }
        }
    }

    /** Take away the cluster, the tenants and the namespaces that every standalone begins with: Apache's tests make their own. */
    public void empty(PulsarAdmin admin) throws PulsarAdminException {
        for (String tenant : admin.tenants().getTenants()) {
            for (String namespace : admin.namespaces().getNamespaces(tenant)) {
                admin.namespaces().deleteNamespace(namespace);
            }
            admin.tenants().deleteTenant(tenant);
        }
        for (String cluster : admin.clusters().getClusters()) {
            admin.clusters().deleteCluster(cluster);
        }
    }

    private List<String> lines(ServiceConfiguration conf) throws IllegalAccessException {
        TreeMap<String, String> settings = new TreeMap<>();
        for (Field field : ServiceConfiguration.class.getDeclaredFields()) {
            if (field.isAnnotationPresent(FieldContext.class) && !PLACES.contains(field.getName())) {
                field.setAccessible(true);
                String text = text(field.get(conf));
                if (text != null) {
                    settings.put(field.getName(), text);
                }
            }
        }
        settings.put("bindAddress", "127.0.0.1");
        settings.put("advertisedAddress", "localhost");
        settings.put("brokerServicePort", "" + ports[0]);
        settings.put("webServicePort", "" + ports[1]);
        if (overTls) {
            settings.put("brokerServicePortTls", "" + ports[2]);
            settings.put("webServicePortTls", "" + ports[3]);
        }
        return settings.entrySet().stream().map(each -> each.getKey() + "=" + each.getValue()).collect(Collectors.toList());
    }

    private static String text(Object value) {
        if (value instanceof Optional) {
            return ((Optional<?>) value).map(Object::toString).orElse(null);
        }
        if (value instanceof Collection) {
            return ((Collection<?>) value).stream().map(Object::toString).collect(Collectors.joining(","));
        }
        if (value == null || value instanceof java.util.Map) {
            return null;
        }
        return value.toString();
    }

    private String lastLine() {
        try {
            List<String> lines = Files.readAllLines(directory.resolve("log"));
            return lines.isEmpty() ? "no word" : lines.get(lines.size() - 1);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
