package interpulse;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Enumeration;
import java.util.stream.Stream;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Ledgers from their creation to their deletion, with both versions of the protocol and every digest. */
class LedgersTest {
    private static final int COUNT = 300;

    static Stream<Arguments> everyWay() {
        return Stream.of(true, false)
                .flatMap(useV2 -> Arrays.stream(DigestType.values()).map(digest -> Arguments.of(useV2, digest)));
    }

    private static void check(LedgerHandle ledger, int count) throws Exception {
        assertEquals(count - 1, ledger.getLastAddConfirmed());
        Enumeration<LedgerEntry> entries = ledger.readEntries(0, count - 1);
        for (int index = 0; index < count; index++) {
            LedgerEntry entry = entries.nextElement();
            assertEquals(index, entry.getEntryId());
            assertArrayEquals(Cluster.payload(index), entry.getEntry());
        }
        assertFalse(entries.hasMoreElements());
    }

    @ParameterizedTest
    @MethodSource("everyWay")
    void whatIsAddedIsReadBackByTheWriterAndAfterTheClose(boolean useV2, DigestType digest) throws Exception {
        BookKeeper client = Cluster.client(useV2, 1);
        LedgerHandle ledger = client.createLedger(3, 3, 2, digest, Cluster.PASSWORD);
        Cluster.fill(ledger, COUNT);
        check(ledger, COUNT);
        ledger.close();
        LedgerHandle again = client.openLedger(ledger.getId(), digest, Cluster.PASSWORD);
        assertEquals(ledger.getLength(), again.getLength());
        check(again, COUNT);
        again.close();
        client.deleteLedger(ledger.getId());
        assertThrows(BKException.class, () -> client.openLedger(ledger.getId(), digest, Cluster.PASSWORD));
    }

    @ParameterizedTest
    @MethodSource("everyWay")
    void aRecoveryFencesTheWriterAndKeepsEverythingAcknowledged(boolean useV2, DigestType digest) throws Exception {
        BookKeeper first = Cluster.client(useV2, 1);
        BookKeeper second = Cluster.client(useV2, 2);
        LedgerHandle writer = first.createLedger(3, 2, 2, digest, Cluster.PASSWORD);
        Cluster.fill(writer, COUNT);
        LedgerHandle recovered = second.openLedger(writer.getId(), digest, Cluster.PASSWORD);
        check(recovered, COUNT);
        BKException refused = assertThrows(BKException.class, () -> writer.addEntry(Cluster.payload(COUNT)));
        assertTrue(
                refused.getCode() == BKException.Code.LedgerFencedException
                        || refused.getCode() == BKException.Code.LedgerClosedException,
                refused.toString());
        check(second.openLedgerNoRecovery(writer.getId(), digest, Cluster.PASSWORD), COUNT);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aReaderWithoutRecoveryDoesNotDisturbTheWriter(boolean useV2) throws Exception {
        BookKeeper first = Cluster.client(useV2, 1);
        BookKeeper second = Cluster.client(useV2, 2);
        LedgerHandle writer = first.createLedger(2, 2, 2, DigestType.CRC32C, Cluster.PASSWORD);
        for (int index = 0; index < 10; index++) {
            writer.addEntry(Cluster.payload(index));
        }
        LedgerHandle reader = second.openLedgerNoRecovery(writer.getId(), DigestType.CRC32C, Cluster.PASSWORD);
        assertEquals(8, reader.readLastConfirmed(), "the last entry is confirmed by the one after it");
        assertArrayEquals(Cluster.payload(9), reader.readUnconfirmedEntries(9, 9).nextElement().getEntry());
        assertEquals(10, writer.addEntry(Cluster.payload(10)));
        assertEquals(9, reader.readLastConfirmed());
        writer.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anotherPasswordIsRefused(boolean useV2) throws Exception {
        BookKeeper client = Cluster.client(useV2, 1);
        LedgerHandle ledger = client.createLedger(1, 1, 1, DigestType.MAC, Cluster.PASSWORD);
        Cluster.fill(ledger, 3);
        assertThrows(BKException.class, () -> client.openLedger(ledger.getId(), DigestType.MAC, new byte[] {1}));
        ledger.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void largeAndEmptyEntriesAreStored(boolean useV2) throws Exception {
        BookKeeper client = Cluster.client(useV2, 1);
        LedgerHandle ledger = client.createLedger(3, 3, 3, DigestType.CRC32C, new byte[0]);
        byte[] large = new byte[4 * 1024 * 1024];
        Arrays.fill(large, (byte) 'x');
        for (int round = 0; round < 3; round++) {
            ledger.addEntry(large);
            ledger.addEntry(new byte[0]);
        }
        Enumeration<LedgerEntry> entries = ledger.readEntries(0, 5);
        for (int index = 0; index < 6; index++) {
            assertArrayEquals(index % 2 == 0 ? large : new byte[0], entries.nextElement().getEntry());
        }
        ledger.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aLedgerWithoutEntriesIsRecoveredAsEmpty(boolean useV2) throws Exception {
        BookKeeper first = Cluster.client(useV2, 1);
        BookKeeper second = Cluster.client(useV2, 2);
        LedgerHandle writer = first.createLedger(3, 3, 2, DigestType.CRC32, Cluster.PASSWORD);
        LedgerHandle recovered = second.openLedger(writer.getId(), DigestType.CRC32, Cluster.PASSWORD);
        assertEquals(-1, recovered.getLastAddConfirmed());
        assertThrows(BKException.class, () -> writer.addEntry(new byte[1]), "its bookies remember the fence");
    }
}
