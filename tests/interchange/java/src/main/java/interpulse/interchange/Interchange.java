package interpulse.interchange;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.mledger.ManagedCursor;
import org.apache.bookkeeper.mledger.ManagedLedger;
import org.apache.bookkeeper.mledger.ManagedLedgerConfig;
import org.apache.bookkeeper.mledger.ManagedLedgerFactoryConfig;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.impl.AckSetStateUtil;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerFactoryImpl;
import org.apache.pulsar.common.api.proto.CommandSubscribe.InitialPosition;

/**
 * `write DIRECTORY`: managed ledgers of every kind, made by Apache's own code and left as a killed or a stopped broker leaves
 * them, in a directory for each compression. `read DIRECTORY...`: opens what somebody left there. Both write what can be seen of
 * them to the file `state` in each directory.
 */
public final class Interchange {
    private static final String NAMESPACE = "public/default/persistent/";
    private static final int ENTRIES_PER_LEDGER = 10;

    private Interchange() {}

    public static void main(String[] arguments) {
        int code = 0;
        try {
            run(arguments);
        } catch (Exception error) {
            error.printStackTrace();
            code = 1;
        }
        System.exit(code);  // the threads of what was left as killed would go on
    }

    private static void run(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[1]);
        if (arguments[0].equals("write")) {
            for (String compression : List.of("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")) {
                write(directory.resolve(compression), compression);
            }
        } else {
            for (int each = 1; each < arguments.length; each++) {
                read(Path.of(arguments[each]));
            }
        }
    }

    private static void write(Path directory, String compression) throws Exception {
        Storage storage = new Storage();
        ManagedLedgerFactoryImpl factory = factory(storage, compression);
        List<String> state = new ArrayList<>();
        for (boolean isArray : new boolean[] {true, false}) {
            for (boolean isStopped : new boolean[] {true, false}) {
                String name = NAMESPACE + (isStopped ? "stopped" : "killed") + (isArray ? "-array" : "-ranges");
                ManagedLedger ledger = factory.open(name, config(isArray));
                acknowledgedInManyWays(ledger);
                state.addAll(State.of(ledger));
                if (isStopped) {
                    ledger.close();
                }
            }
        }
        ManagedLedger terminated = factory.open(NAMESPACE + "terminated", config(true));
        append(terminated, 3);
        terminated.terminate();
        state.addAll(State.of(terminated));
        ManagedLedger empty = factory.open(NAMESPACE + "empty", config(true));
        empty.openCursor("waiting");
        state.addAll(State.of(empty));
        storage.dump(directory);
        Files.write(directory.resolve("state"), sorted(state));
    }

    private static void acknowledgedInManyWays(ManagedLedger ledger) throws Exception {
        ledger.setProperties(Map.of("partitions", "4", "owner", "somebody"));
        ManagedCursor nothing = ledger.openCursor("nothing", InitialPosition.Earliest);
        ManagedCursor all = ledger.openCursor("all", InitialPosition.Earliest);
        ManagedCursor holes = ledger.openCursor("holes", InitialPosition.Earliest);
        ManagedCursor second = ledger.openCursor("every second", InitialPosition.Earliest);
        ManagedCursor batches = ledger.openCursor("batches", InitialPosition.Earliest);
        ManagedCursor marked = ledger.openCursor("marked", InitialPosition.Earliest);
        ManagedCursor described = ledger.openCursor("described", InitialPosition.Earliest, Map.of(), Map.of("filter", "a > 1"));
        List<Position> positions = append(ledger, 3 * ENTRIES_PER_LEDGER - 5);
        all.markDelete(positions.get(positions.size() - 1));
        holes.markDelete(positions.get(4));
        for (int each : new int[] {7, 8, 9, 10, 11, 13, 19, 24}) {
            holes.delete(positions.get(each));
        }
        for (int each = 1; each < positions.size(); each += 2) {
            second.delete(positions.get(each));
        }
        batches.markDelete(positions.get(0));
        deletePart(batches, positions.get(2), 5, 0, 3);
        deletePart(batches, positions.get(12), 130, 64, 130);
        batches.delete(positions.get(15));
        marked.markDelete(positions.get(11), Map.of("producer-1", 77L, "producer-2", -1L));
        described.putCursorProperty("added", "later").get();
        described.delete(positions.get(6));
    }

    /** Of the batch at `position` the messages from `first` up to `end` are acknowledged. */
    private static void deletePart(ManagedCursor cursor, Position position, int size, int first, int end) throws Exception {
        BitSet left = new BitSet();
        left.set(0, size);
        left.clear(first, end);
        cursor.delete(AckSetStateUtil.createPositionWithAckSet(position.getLedgerId(), position.getEntryId(), left.toLongArray()));
    }

    private static List<Position> append(ManagedLedger ledger, int count) throws Exception {
        List<Position> positions = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            positions.add(ledger.addEntry(("entry " + number).getBytes(StandardCharsets.UTF_8)));
        }
        return positions;
    }

    private static void read(Path directory) throws Exception {
        Storage storage = new Storage();
        storage.load(directory);
        ManagedLedgerFactoryImpl factory = factory(storage, "NONE");
        List<String> state = new ArrayList<>();
        for (String name : storage.metadata.getChildren(Storage.ROOT + "/" + NAMESPACE.substring(0, NAMESPACE.length() - 1)).get()) {
            state.addAll(State.of(factory.open(NAMESPACE + name, config(true))));
        }
        Files.write(directory.resolve("state"), sorted(state));
    }

    private static List<String> sorted(List<String> lines) {
        Collections.sort(lines);
        return lines;
    }

    private static ManagedLedgerFactoryImpl factory(Storage storage, String compression) throws Exception {
        ManagedLedgerFactoryConfig config = new ManagedLedgerFactoryConfig();
        config.setManagedLedgerInfoCompressionType(compression);
        config.setManagedLedgerInfoCompressionThresholdInBytes(16);
        config.setManagedCursorInfoCompressionType(compression);
        config.setManagedCursorInfoCompressionThresholdInBytes(16);
        return new ManagedLedgerFactoryImpl(storage.metadata, storage.bookkeeper, config);
    }

    private static ManagedLedgerConfig config(boolean isArray) {
        ManagedLedgerConfig config = new ManagedLedgerConfig();
        config.setMaxEntriesPerLedger(ENTRIES_PER_LEDGER);
        config.setMinimumRolloverTime(0, TimeUnit.SECONDS);
        config.setRetentionTime(-1, TimeUnit.SECONDS);
        config.setRetentionSizeInMB(-1);
        config.setThrottleMarkDelete(0);
        config.setDeletionAtBatchIndexLevelEnabled(true);
        config.setUnackedRangesOpenCacheSetEnabled(true);
        config.setPersistIndividualAckAsLongArray(isArray);
        return config;
    }
}
