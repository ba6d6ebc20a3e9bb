package interpulse.interchange;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.PulsarMockBookKeeper;
import org.apache.bookkeeper.client.PulsarMockLedgerHandle;
import org.apache.bookkeeper.common.util.OrderedExecutor;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.extended.MetadataStoreExtended;

/**
 * What is durable: a metadata store and ledgers, both in memory, and their form in files.
 *
 * <p>File `metadata`: a line `path TAB value in hex` for each node below /managed-ledgers. File `ledgers`: a line
 * `id TAB open|closed` for each ledger and below it a line `TAB entry in hex` for each of its entries.
 */
final class Storage implements AutoCloseable {
    static final String ROOT = "/managed-ledgers";
    private static final byte[] PASSWORD = new byte[0];
    private static final HexFormat HEX = HexFormat.of();

    final MetadataStoreExtended metadata;
    final PulsarMockBookKeeper bookkeeper;
    private final OrderedExecutor executor = OrderedExecutor.newBuilder().numThreads(1).name("bookkeeper").build();

    Storage() throws Exception {
        metadata = MetadataStoreExtended.create("memory:local-" + System.nanoTime(), MetadataStoreConfig.builder().build());
        bookkeeper = new PulsarMockBookKeeper(executor);
    }

    void dump(Path directory) throws Exception {
        Files.createDirectories(directory);
        List<String> nodes = new ArrayList<>();
        addNodes(nodes, ROOT);
        Files.write(directory.resolve("metadata"), nodes);
        List<String> lines = new ArrayList<>();
        List<Long> ids = new ArrayList<>(bookkeeper.getLedgers());
        Collections.sort(ids);
        for (long id : ids) {
            PulsarMockLedgerHandle ledger = bookkeeper.getLedgerMap().get(id);
            lines.add(id + "\t" + (ledger.isFenced() ? "closed" : "open"));
            if (ledger.getLastAddConfirmed() >= 0) {
                for (LedgerEntry entry : Collections.list(ledger.readEntries(0, ledger.getLastAddConfirmed()))) {
                    lines.add("\t" + HEX.formatHex(entry.getEntry()));
                }
            }
        }
        Files.write(directory.resolve("ledgers"), lines);
    }

    private void addNodes(List<String> nodes, String path) throws Exception {
        metadata.get(path).get().ifPresent(found -> nodes.add(path + "\t" + HEX.formatHex(found.getValue())));
        for (String child : metadata.getChildren(path).get()) {
            addNodes(nodes, path + "/" + child);
        }
    }

    void load(Path directory) throws Exception {
        for (String line : lines(directory.resolve("metadata"))) {
            String[] parts = line.split("\t", -1);
            metadata.put(parts[0], HEX.parseHex(parts[1]), Optional.of(-1L)).get();
        }
        List<String> lines = lines(directory.resolve("ledgers"));
        long last = lines.stream().filter(line -> !line.startsWith("\t")).mapToLong(Storage::id).max().orElse(0);
        for (long id = -1; id < last; ) {  // new ledgers get greater ids
            id = bookkeeper.createLedger(BookKeeper.DigestType.CRC32C, PASSWORD).getId();
            bookkeeper.deleteLedger(id);
        }
        LedgerHandle ledger = null;
        for (String line : lines) {
            if (line.startsWith("\t")) {
                ledger.addEntry(HEX.parseHex(line.substring(1)));
            } else {
                ledger = restored(id(line));
            }
        }
    }

    private static long id(String line) {
        return Long.parseLong(line.substring(0, line.indexOf('\t')));
    }

    private PulsarMockLedgerHandle restored(long id) throws Exception {
        var ledger = new PulsarMockLedgerHandle(bookkeeper, id, BookKeeper.DigestType.CRC32C, PASSWORD);
        bookkeeper.getLedgerMap().put(id, ledger);
        return ledger;
    }

    private static List<String> lines(Path file) throws IOException {
        return Files.readAllLines(file, StandardCharsets.UTF_8);
    }

    @Override
    public void close() throws Exception {
        metadata.close();
        executor.shutdownNow();
    }
}
