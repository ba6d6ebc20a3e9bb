package interpulse;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * A program: ledgers for another client, and another client's ledgers read.
 *
 * <p>{@code URI write COUNT DIGEST:PASSWORD:CLOSED...} prints the id of each ledger; {@code URI read COUNT DIGEST:PASSWORD:ID...} recovers
 * each and checks all of it. Each line KEY=VALUE of the environment's CLIENT_SETTINGS is a setting of the client.
 */
final class Exchange {
    private Exchange() {}

    public static void main(String[] words) {
        int code = 0;
        try {
            exchange(words);
        } catch (Exception | AssertionError failure) {
            failure.printStackTrace();
            code = 1;
        }
        System.out.flush();
        Runtime.getRuntime().halt(code); // open ledgers stay open, and the client's threads would go on
    }

    private static void exchange(String[] words) throws Exception {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri(words[0]);
        configuration.setUseV2WireProtocol(true);
        String settings = System.getenv().getOrDefault("CLIENT_SETTINGS", "");
        settings.lines().map(line -> line.split("=", 2)).forEach(pair -> configuration.setProperty(pair[0], pair[1]));
        int count = Integer.parseInt(words[2]);
        BookKeeper client = new BookKeeper(configuration);
        for (String each : Arrays.copyOfRange(words, 3, words.length)) {
            String[] parts = each.split(":", -1);
            DigestType digest = DigestType.valueOf(parts[0]);
            byte[] password = parts[1].getBytes(StandardCharsets.UTF_8);
            if (words[1].equals("write")) {
                System.out.println(write(client, count, digest, password, parts[2].equals("true")));
            } else {
                read(client, count, digest, password, Long.parseLong(parts[2]));
            }
        }
    }

    static byte[] payload(int index) {
        return ("entry-" + index + "-").repeat(index % 50).getBytes(StandardCharsets.UTF_8);
    }

    private static long write(BookKeeper client, int count, DigestType digest, byte[] password, boolean isClosed)
            throws Exception {
        LedgerHandle ledger = client.createLedger(3, 3, 2, digest, password);
        List<CompletableFuture<Long>> added = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            CompletableFuture<Long> one = new CompletableFuture<>();
            added.add(one);
            ledger.asyncAddEntry(payload(index), (code, handle, id, context) -> {
                if (code == BKException.Code.OK) {
                    one.complete(id);
                } else {
                    one.completeExceptionally(BKException.create(code));
                }
            }, null);
        }
        for (CompletableFuture<Long> one : added) {
            one.get(20, TimeUnit.SECONDS);
        }
        if (isClosed) {
            ledger.close();
        }
        return ledger.getId();
    }

    private static void read(BookKeeper client, int count, DigestType digest, byte[] password, long id) throws Exception {
        LedgerHandle ledger = client.openLedger(id, digest, password);
        if (ledger.getLastAddConfirmed() != count - 1) {
            throw new AssertionError("ledger " + id + " ends at " + ledger.getLastAddConfirmed());
        }
        Enumeration<LedgerEntry> entries = ledger.readEntries(0, count - 1);
        for (int index = 0; index < count; index++) {
            if (!Arrays.equals(payload(index), entries.nextElement().getEntry())) {
                throw new AssertionError("ledger " + id + " entry " + index + " is another");
            }
        }
    }
}
