package interpulse;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** The bookies that are tested, named by BOOKIES_METADATA_URI, and what every test does with them. */
final class Cluster {
    static final byte[] PASSWORD = "secret".getBytes(StandardCharsets.UTF_8);

    private static final Map<String, BookKeeper> CLIENTS = new HashMap<>();

    private Cluster() {}

    static ClientConfiguration configuration(boolean useV2) {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri(System.getenv("BOOKIES_METADATA_URI"));
        configuration.setUseV2WireProtocol(useV2);
        configuration.setAddEntryTimeout(10);
        configuration.setReadEntryTimeout(10);
        return configuration;
    }

    /** One of two clients of a version, which live as long as the suite: to close one takes seconds. */
    static synchronized BookKeeper client(boolean useV2, int number) throws Exception {
        String name = useV2 + "-" + number;
        BookKeeper client = CLIENTS.get(name);
        if (client == null) {
            client = new BookKeeper(configuration(useV2));
            CLIENTS.put(name, client);
        }
        return client;
    }

    static byte[] payload(int index) {
        return ("entry-" + index + "-").repeat(index % 50).getBytes(StandardCharsets.UTF_8);
    }

    /** All sent before the first is waited for. */
    static void fill(LedgerHandle ledger, int count) throws Exception {
        List<CompletableFuture<Long>> added = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            added.add(add(ledger, payload(index)));
        }
        for (int index = 0; index < count; index++) {
            long id = added.get(index).get(20, TimeUnit.SECONDS);
            if (id != index) {
                throw new AssertionError("entry " + index + " was given the id " + id);
            }
        }
    }

    static CompletableFuture<Long> add(LedgerHandle ledger, byte[] data) {
        CompletableFuture<Long> added = new CompletableFuture<>();
        ledger.asyncAddEntry(data, (code, handle, id, context) -> {
            if (code == BKException.Code.OK) {
                added.complete(id);
            } else {
                added.completeExceptionally(BKException.create(code));
            }
        }, null);
        return added;
    }
}
