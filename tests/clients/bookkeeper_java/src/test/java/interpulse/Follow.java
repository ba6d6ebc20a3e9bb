package interpulse;

import java.nio.charset.StandardCharsets;
import java.util.Enumeration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * A program: an open ledger for a reader, or a reader of one, both with explicit last add confirmed.
 *
 * <p>{@code URI write COUNT} adds, prints the ledger's id, and stays until it is killed. {@code URI read ID LAST} waits until LAST is
 * confirmed, prints each entry on a line of its own, polls for the one after, and prints that one.
 */
final class Follow {
    private static final int SECONDS = 30;

    private Follow() {}

    public static void main(String[] words) throws Exception {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri(words[0]);
        configuration.setUseV2WireProtocol(false);
        configuration.setExplictLacInterval(100);
        BookKeeper client = new BookKeeper(configuration);
        if (words[1].equals("write")) {
            write(client, Integer.parseInt(words[2]));
        } else {
            read(client, Long.parseLong(words[2]), Long.parseLong(words[3]));
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void write(BookKeeper client, int count) throws Exception {
        LedgerHandle ledger = client.createLedger(2, 2, 2, DigestType.CRC32C, new byte[0]);
        for (int index = 0; index < count; index++) {
            ledger.addEntry(("entry-" + index).getBytes(StandardCharsets.UTF_8));
        }
        System.out.println(ledger.getId());
        System.out.flush();
        System.in.read();
    }

    private static void read(BookKeeper client, long id, long last) throws Exception {
        LedgerHandle ledger = client.openLedgerNoRecovery(id, DigestType.CRC32C, new byte[0]);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (ledger.readExplicitLastConfirmed() != last) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("confirmed up to " + ledger.readExplicitLastConfirmed());
            }
            Thread.sleep(20);
        }
        Enumeration<LedgerEntry> entries = ledger.readEntries(0, last);
        while (entries.hasMoreElements()) {
            System.out.println(new String(entries.nextElement().getEntry(), StandardCharsets.UTF_8));
        }
        System.out.flush();
        CompletableFuture<String> next = new CompletableFuture<>();
        ledger.asyncReadLastConfirmedAndEntry(last + 1, SECONDS * 1000L, true, (code, confirmed, entry, context) -> {
            if (code == BKException.Code.OK && entry != null) {
                next.complete(new String(entry.getEntry(), StandardCharsets.UTF_8) + " " + confirmed);
            } else {
                next.completeExceptionally(BKException.create(code));
            }
        }, null);
        System.out.println(next.get(SECONDS, TimeUnit.SECONDS));
    }
}
