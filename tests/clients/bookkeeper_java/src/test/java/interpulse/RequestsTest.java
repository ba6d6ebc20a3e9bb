package interpulse;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.EnumSet;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.BookieInfoReader.BookieInfo;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.util.AvailabilityOfEntriesOfLedger;
import org.junit.jupiter.api.Test;

/** The requests that only one of the versions has. */
class RequestsTest {
    @Test
    void aBatchReadGivesWhatWasAskedFor() throws Exception {
        ClientConfiguration configuration = Cluster.configuration(true);
        configuration.setBatchReadEnabled(true);
        try (BookKeeper client = new BookKeeper(configuration)) {
            LedgerHandle ledger = client.createLedger(2, 2, 2, DigestType.CRC32C, Cluster.PASSWORD);
            Cluster.fill(ledger, 100);
            try (LedgerEntries batch = ledger.batchRead(10, 50, 1 << 20)) {
                int index = 10;
                for (org.apache.bookkeeper.client.api.LedgerEntry entry : batch) {
                    assertEquals(index, entry.getEntryId());
                    assertArrayEquals(Cluster.payload(index), entry.getEntryBytes());
                    index++;
                }
                assertEquals(60, index);
            }
            ledger.close();
        }
    }

    @Test
    void aReaderWaitsForTheNextEntry() throws Exception {
        BookKeeper client = Cluster.client(false, 1);
        LedgerHandle writer = client.createLedger(2, 2, 2, DigestType.CRC32C, Cluster.PASSWORD);
        Cluster.fill(writer, 2);
        try (ReadHandle reader = client.newOpenLedgerOp().withLedgerId(writer.getId()).withPassword(Cluster.PASSWORD)
                .withDigestType(org.apache.bookkeeper.client.api.DigestType.CRC32C).withRecovery(false).execute().get()) {
            CompletableFuture<LastConfirmedAndEntry> next = reader.readLastAddConfirmedAndEntryAsync(1, 9_000, true);
            assertFalse(next.isDone());
            writer.addEntry(Cluster.payload(2));
            try (LastConfirmedAndEntry found = next.get(8, TimeUnit.SECONDS)) {
                assertEquals(1, found.getLastAddConfirmed());
                assertTrue(found.hasEntry());
                assertArrayEquals(Cluster.payload(1), found.getEntry().getEntryBytes());
            }
        }
        writer.close();
    }

    @Test
    void anExplicitLastAddConfirmedIsSeenByReaders() throws Exception {
        ClientConfiguration configuration = Cluster.configuration(false);
        configuration.setExplictLacInterval(20);
        try (BookKeeper client = new BookKeeper(configuration); BookKeeper other = new BookKeeper(Cluster.configuration(false))) {
            LedgerHandle writer = client.createLedger(2, 2, 2, DigestType.CRC32, Cluster.PASSWORD);
            Cluster.fill(writer, 5);
            LedgerHandle reader = other.openLedgerNoRecovery(writer.getId(), DigestType.CRC32, Cluster.PASSWORD);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (reader.readExplicitLastConfirmed() < 4) {
                assertTrue(System.nanoTime() < deadline, "the explicit last add confirmed does not arrive");
            }
            LedgerEntry last = reader.readEntries(4, 4).nextElement();
            assertArrayEquals(Cluster.payload(4), last.getEntry());
            writer.close();
        }
    }

    @Test
    void aDeferredSyncIsForced() throws Exception {
        BookKeeper client = Cluster.client(false, 1);
        try (WriteHandle writer = client.newCreateLedgerOp().withEnsembleSize(3).withWriteQuorumSize(3).withAckQuorumSize(2)
                        .withPassword(Cluster.PASSWORD).withWriteFlags(EnumSet.of(WriteFlag.DEFERRED_SYNC)).execute().get()) {
            for (int index = 0; index < 10; index++) {
                writer.append(Cluster.payload(index));
            }
            assertEquals(-1, writer.getLastAddConfirmed());
            writer.force().get(60, TimeUnit.SECONDS);
            assertEquals(9, writer.getLastAddConfirmed());
        }
    }

    @Test
    void bookiesSayWhichEntriesTheyHaveAndHowFullTheyAre() throws Exception {
        BookKeeper client = Cluster.client(false, 1);
        try (BookKeeperAdmin admin = new BookKeeperAdmin(client, Cluster.configuration(false))) {
            LedgerHandle ledger = client.createLedger(3, 2, 2, DigestType.CRC32C, Cluster.PASSWORD);
            Cluster.fill(ledger, 30);
            long held = 0;
            for (BookieId bookie : ledger.getLedgerMetadata().getAllEnsembles().get(0L)) {
                AvailabilityOfEntriesOfLedger entries =
                        admin.asyncGetListOfEntriesOfLedger(bookie, ledger.getId()).get(60, TimeUnit.SECONDS);
                assertEquals(20, entries.getTotalNumOfAvailableEntries());
                held += entries.getTotalNumOfAvailableEntries();
            }
            assertEquals(60, held);
            Map<BookieId, BookieInfo> disks = client.getBookieInfo();
            assertTrue(disks.size() >= 3, disks.toString());
            for (BookieInfo disk : disks.values()) {
                assertNotNull(disk);
                assertTrue(disk.getTotalDiskSpace() >= disk.getFreeDiskSpace() && disk.getFreeDiskSpace() > 0);
            }
            ledger.close();
        }
    }
}
