package interpulse.strangers;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.mockito.Mockito;
import org.testng.SkipException;

/** Thrown where a test asks for what only a broker of its own process could tell; TestNG counts such a test as skipped. */
public class LooksInside extends SkipException {
    public LooksInside(String what) {
        super("looks inside the broker: " + what);
    }

    /** An object that answers the methods of these names, and throws at all others. */
    public static <T> T answering(Class<T> type, Map<String, Object> answers) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(call -> {
            String name = call.getMethod().getName();
            if (answers.containsKey(name)) {
                return answers.get(name);
            }
            if (name.equals("toString")) {
                return type.getSimpleName() + " outside";
            }
            if (name.equals("close") || name.equals("hashCode") || name.equals("equals")) {
                return Mockito.RETURNS_DEFAULTS.answer(call);
            }
            if (isForBundles()) {
                return Mockito.mock(call.getMethod().getReturnType(), Mockito.withSettings().stubOnly());
            }
            throw new LooksInside(name);
        }));
    }

    /** Tests make a factory of bundles to compute names with, which registers itself with the broker's stores. */
    private static boolean isForBundles() {
        return StackWalker.getInstance().walk(frames -> frames.anyMatch(
                frame -> frame.getClassName().endsWith(".NamespaceBundleFactory") && frame.getMethodName().equals("<init>")));
    }

    /** Answers of a PulsarService about where it is and how it is configured. */
    public static Map<String, Object> addresses(ServiceConfiguration conf, Standalone standalone) {
        Map<String, Object> answers = new HashMap<>();
        answers.put("getBrokerServiceUrl", standalone.brokerUrl());
        answers.put("getSafeBrokerServiceUrl", standalone.brokerUrl());
        answers.put("getBrokerServiceUrlTls", standalone.brokerUrlTls());
        answers.put("getWebServiceAddress", standalone.webUrl());
        answers.put("getSafeWebServiceAddress", standalone.webUrl());
        answers.put("getWebServiceAddressTls", standalone.webUrlTls());
        answers.put("getBrokerListenPort", Optional.of(standalone.brokerPort()));
        answers.put("getBrokerListenPortTls", Optional.ofNullable(standalone.brokerPortTls()));
        answers.put("getListenPortHTTP", Optional.of(standalone.webPort()));
        answers.put("getListenPortHTTPS", Optional.ofNullable(standalone.webPortTls()));
        answers.put("getAdvertisedAddress", "localhost");
        answers.put("getBrokerId", "localhost:" + standalone.webPort());
        answers.put("getLookupServiceAddress", "localhost:" + standalone.webPort());
        ServiceConfiguration told = readOnly(conf);
        answers.put("getConfiguration", told);
        answers.put("getConfig", told);
        return answers;
    }

    /** What is set while the broker runs would have no effect on another process. */
    private static ServiceConfiguration readOnly(ServiceConfiguration conf) {
        return Mockito.mock(ServiceConfiguration.class, Mockito.withSettings().stubOnly().defaultAnswer(call -> {
            if (call.getMethod().getName().startsWith("set")) {
                throw new LooksInside(call.getMethod().getName() + " while it runs");
            }
            return call.getMethod().invoke(conf, call.getArguments());
        }));
    }
}
