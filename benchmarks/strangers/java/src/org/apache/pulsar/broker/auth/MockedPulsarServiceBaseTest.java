package org.apache.pulsar.broker.auth;

import java.lang.reflect.Field;
import java.net.URI;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import interpulse.strangers.LooksInside;
import interpulse.strangers.Standalone;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.broker.testcontext.PulsarTestContext;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminBuilder;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.impl.ProducerImpl;
import org.apache.pulsar.common.policies.data.ClusterData;
import org.apache.pulsar.common.policies.data.TenantInfo;
import org.apache.pulsar.common.policies.data.TenantInfoImpl;
import org.apache.pulsar.tests.TestRetrySupport;
import org.apache.zookeeper.MockZooKeeper;
import org.testng.annotations.DataProvider;

/**
 * Stands on the class path before Apache's class of this name, from which their tests get a broker of their own process: the
 * broker is a standalone of ours in another process, with the configuration that the test made. It has nothing in it when a
 * test begins. What asks for the insides of a broker ends by LooksInside.
 */
public abstract class MockedPulsarServiceBaseTest extends TestRetrySupport {
    private static final String CERTIFICATES = System.getProperty("strangers.tests") + "/certificate-authority/";
    public static final String CA_CERT_FILE_PATH = CERTIFICATES + "certs/ca.cert.pem";
    public static final String BROKER_CERT_FILE_PATH = CERTIFICATES + "server-keys/broker.cert.pem";
    public static final String BROKER_KEY_FILE_PATH = CERTIFICATES + "server-keys/broker.key-pk8.pem";
    public static final String PROXY_CERT_FILE_PATH = CERTIFICATES + "server-keys/proxy.cert.pem";
    public static final String PROXY_KEY_FILE_PATH = CERTIFICATES + "server-keys/proxy.key-pk8.pem";
    public static final String BROKER_KEYSTORE_FILE_PATH = CERTIFICATES + "jks/broker.keystore.jks";
    public static final String BROKER_TRUSTSTORE_FILE_PATH = CERTIFICATES + "jks/broker.truststore.jks";
    public static final String BROKER_TRUSTSTORE_NO_PASSWORD_FILE_PATH = CERTIFICATES + "jks/broker.truststore.nopassword.jks";
    public static final String BROKER_KEYSTORE_PW = "111111";
    public static final String BROKER_TRUSTSTORE_PW = "111111";
    public static final String CLIENT_KEYSTORE_FILE_PATH = CERTIFICATES + "jks/client.keystore.jks";
    public static final String CLIENT_TRUSTSTORE_FILE_PATH = CERTIFICATES + "jks/client.truststore.jks";
    public static final String CLIENT_TRUSTSTORE_NO_PASSWORD_FILE_PATH = CERTIFICATES + "jks/client.truststore.nopassword.jks";
    public static final String CLIENT_KEYSTORE_PW = "111111";
    public static final String CLIENT_TRUSTSTORE_PW = "111111";
    public static final String PROXY_KEYSTORE_FILE_PATH = CERTIFICATES + "jks/proxy.keystore.jks";
    public static final String PROXY_KEYSTORE_PW = "111111";
    public static final String PROXY_AND_CLIENT_TRUSTSTORE_FILE_PATH = CERTIFICATES + "jks/proxy-and-client.truststore.jks";
    public static final String PROXY_AND_CLIENT_TRUSTSTORE_PW = "111111";
    public static final String CLIENT_KEYSTORE_CN = "clientuser";
    public static final String KEYSTORE_TYPE = "JKS";
    protected static final String DUMMY_VALUE = "DUMMY_VALUE";
    protected static final String GLOBAL_DUMMY_VALUE = "GLOBAL_DUMMY_VALUE";

    protected ServiceConfiguration conf;
    protected PulsarTestContext pulsarTestContext;
    protected MockZooKeeper mockZooKeeper;
    protected MockZooKeeper mockZooKeeperGlobal;
    protected PulsarService pulsar;
    protected PulsarAdmin admin;
    protected PulsarClient pulsarClient;
    protected PortForwarder brokerGateway;
    protected boolean enableBrokerGateway = false;
    protected URL brokerUrl;
    protected URL brokerUrlTls;
    protected URI lookupUrl;
    protected boolean isTcpLookup = false;
    protected String configClusterName = "test";
    protected boolean enableBrokerInterceptor = false;
    protected boolean useTestZookeeper = false;

    private final List<AutoCloseable> closeables = new ArrayList<>();
    private Standalone standalone;

    public MockedPulsarServiceBaseTest() {
        resetConfig();
    }

    public static String getTlsFileForClient(String name) {
        return CERTIFICATES + "client-keys/" + name + ".pem";
    }

    protected abstract void setup() throws Exception;

    protected abstract void cleanup() throws Exception;

    protected void setupWithClusterName(String clusterName) throws Exception {
        conf.setClusterName(clusterName);
        configClusterName = clusterName;
        internalSetup();
    }

    protected PulsarService getPulsar() {
        return pulsar;
    }

    protected final void resetConfig() {
        conf = getDefaultConf();
        if (conf.getClusterName() != null) {
            configClusterName = conf.getClusterName();
        }
    }

    protected ServiceConfiguration getDefaultConf() {
        ServiceConfiguration made = new ServiceConfiguration();
        made.setClusterName("test");
        made.setActiveConsumerFailoverDelayTimeMillis(0);
        made.setDefaultNumberOfNamespaceBundles(1);
        made.setAllowAutoTopicCreationType(org.apache.pulsar.common.policies.data.TopicType.NON_PARTITIONED);
        made.setBrokerServicePort(Optional.of(0));
        made.setWebServicePort(Optional.of(0));
        made.setManagedLedgerCacheSizeMB(8);
        made.setBrokerShutdownTimeoutMs(0L);
        return made;
    }

    protected void doInitConf() throws Exception {
    }

    protected final void internalSetup(ServiceConfiguration given) throws Exception {
        conf = given;
        internalSetup();
    }

    protected final void internalSetup() throws Exception {
        incrementSetupNumber();
        init();
        pulsarClient = newPulsarClient(lookupUrl.toString(), 0);
    }

    protected final void internalSetupForStatsTest() throws Exception {
        incrementSetupNumber();
        init();
        pulsarClient = newPulsarClient(lookupUrl.toString(), 1);
    }

    protected final void init() throws Exception {
        doInitConf();
        standalone = new Standalone(Path.of(System.getProperty("strangers.scratch")));
        startBroker();
        standalone.empty(admin);
    }

    protected void startBroker() throws Exception {
        standalone.start(conf);
        pulsar = LooksInside.answering(PulsarService.class, LooksInside.addresses(conf, standalone));
        brokerUrl = new URL(standalone.webUrl());
        brokerUrlTls = standalone.webUrlTls() == null ? null : new URL(standalone.webUrlTls());
        lookupUrl = new URI(isTcpLookup ? standalone.brokerUrl() : standalone.webUrl());
        closeAdmin();
        boolean overTls = brokerUrlTls != null && conf.isTlsEnabled();
        PulsarAdminBuilder builder = PulsarAdmin.builder().serviceHttpUrl((overTls ? brokerUrlTls : brokerUrl).toString());
        customizeNewPulsarAdminBuilder(builder);
        admin = builder.build();
    }

    protected void stopBroker() throws Exception {
        if (standalone != null) {
            standalone.stop();
        }
        pulsar = null;
    }

    protected void restartBroker() throws Exception {
        restartBroker(ignored -> { });
    }

    protected void restartBroker(java.util.function.Consumer<ServiceConfiguration> change) throws Exception {
        stopBroker();
        change.accept(conf);
        startBroker();
        if (pulsarClient == null) {
            pulsarClient = newPulsarClient(lookupUrl.toString(), 0);
        }
    }

    protected final void internalCleanup() throws Exception {
        markCurrentSetupNumberCleaned();
        closeAdmin();
        if (pulsarClient != null) {
            pulsarClient.shutdown();
            pulsarClient = null;
        }
        for (AutoCloseable each : closeables) {
            try {
                each.close();
            } catch (Exception broken) {
                System.err.println("not closed: " + broken);
            }
        }
        closeables.clear();
        if (standalone != null) {
            standalone.remove();
            standalone = null;
        }
        pulsar = null;
        resetConfig();
        onCleanup();
    }

    protected void onCleanup() {
    }

    protected void closeAdmin() {
        if (admin != null) {
            admin.close();
            admin = null;
        }
    }

    protected <T extends AutoCloseable> T registerCloseable(T closeable) {
        closeables.add(closeable);
        return closeable;
    }

    protected PulsarClient newPulsarClient(String url, int intervalInSecs) throws PulsarClientException {
        ClientBuilder builder = PulsarClient.builder().serviceUrl(url).statsInterval(intervalInSecs, TimeUnit.SECONDS);
        customizeNewPulsarClientBuilder(builder);
        return createNewPulsarClient(builder);
    }

    protected void customizeNewPulsarClientBuilder(ClientBuilder builder) {
    }

    protected void customizeNewPulsarAdminBuilder(PulsarAdminBuilder builder) {
    }

    protected PulsarClient createNewPulsarClient(ClientBuilder builder) throws PulsarClientException {
        return builder.build();
    }

    protected PulsarClient replacePulsarClient(ClientBuilder builder) throws PulsarClientException {
        if (pulsarClient != null) {
            pulsarClient.shutdown();
        }
        pulsarClient = createNewPulsarClient(builder);
        return pulsarClient;
    }

    protected BrokerService customizeNewBrokerService(BrokerService service) {
        throw new LooksInside("customizeNewBrokerService");
    }

    protected void beforePulsarStart(PulsarService service) throws Exception {
    }

    protected void afterPulsarStart(PulsarService service) throws Exception {
    }

    protected PulsarTestContext createMainPulsarTestContext(ServiceConfiguration given) throws Exception {
        throw new LooksInside("createMainPulsarTestContext");
    }

    protected void customizeMainPulsarTestContextBuilder(PulsarTestContext.Builder builder) {
    }

    protected PulsarTestContext.Builder createPulsarTestContextBuilder(ServiceConfiguration given) {
        throw new LooksInside("createPulsarTestContextBuilder");
    }

    protected void configureMetadataStores(PulsarTestContext.Builder builder) {
    }

    protected PulsarTestContext createAdditionalPulsarTestContext(ServiceConfiguration given) throws Exception {
        throw new LooksInside("createAdditionalPulsarTestContext");
    }

    protected PulsarTestContext createAdditionalPulsarTestContext(
            ServiceConfiguration given, java.util.function.Consumer<PulsarTestContext.Builder> change) throws Exception {
        throw new LooksInside("createAdditionalPulsarTestContext");
    }

    protected void waitForZooKeeperWatchers() {
    }

    protected TenantInfoImpl createDefaultTenantInfo() throws PulsarAdminException {
        createCluster();
        return new TenantInfoImpl(new HashSet<>(), new HashSet<>(Set.of(configClusterName)));
    }

    protected void setupDefaultTenantAndNamespace() throws Exception {
        createCluster();
        if (!admin.tenants().getTenants().contains("public")) {
            admin.tenants().createTenant("public", TenantInfo.builder().allowedClusters(Set.of(configClusterName)).build());
        }
        if (!admin.namespaces().getNamespaces("public").contains("public/default")) {
            admin.namespaces().createNamespace("public/default");
        }
    }

    private void createCluster() throws PulsarAdminException {
        if (!admin.clusters().getClusters().contains(configClusterName)) {
            admin.clusters().createCluster(configClusterName, ClusterData.builder().serviceUrl(brokerUrl.toString()).build());
        }
    }

    public static boolean retryStrategically(Predicate<Void> holds, int tries, long milliseconds) throws Exception {
        for (int tried = 1; tried <= tries; tried++) {
            if (holds.test(null) || tried == tries) {
                return true;
            }
            Thread.sleep(milliseconds * tried);
        }
        return false;
    }

    public static void setFieldValue(Class<?> type, Object object, String name, Object value) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        field.set(object, value);
    }

    protected Object asyncRequests(java.util.function.Consumer<TestAsyncResponse> request) throws Exception {
        throw new LooksInside("asyncRequests");
    }

    protected void deleteNamespaceWithRetry(String namespace, boolean force) throws Exception {
        deleteNamespaceWithRetry(namespace, force, admin);
    }

    public static void deleteNamespaceWithRetry(String namespace, boolean force, PulsarAdmin admin) throws Exception {
        for (int tries = 0;; tries++) {
            try {
                admin.namespaces().deleteNamespace(namespace, force);
                return;
            } catch (PulsarAdminException.NotFoundException gone) {
                return;
            } catch (PulsarAdminException notYet) {
                if (tries == 10) {
                    throw notYet;
                }
                Thread.sleep(500);
            }
        }
    }

    @DataProvider(name = "invalidPersistentPolicies")
    public Object[][] incorrectPersistentPolicies() {
        return new Object[][] {{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 1, 0}, {1, 0, 1}};
    }

    protected ServiceProducer getServiceProducer(ProducerImpl producer, String topic) {
        throw new LooksInside("getServiceProducer");
    }

    protected void sleepSeconds(int seconds) {
        try {
            Thread.sleep(seconds * 1000L);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    protected void reconnectAllConnections() throws Exception {
        throw new LooksInside("reconnectAllConnections");
    }

    protected void assertOtelMetricLongSumValue(String metric, int value) {
        throw new LooksInside("assertOtelMetricLongSumValue");
    }

    protected void logTopicStats(String topic) {
    }

    /** Only its name is used: whoever asks for one has looked inside before. */
    public static class ServiceProducer {
    }

    /** As above. */
    public static class TestAsyncResponse {
    }
}
