package interpulse.interchange;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.bookkeeper.mledger.Entry;
import org.apache.bookkeeper.mledger.ManagedCursor;
import org.apache.bookkeeper.mledger.ManagedLedger;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;

/** What can be seen of a managed ledger, as sorted lines: entries, marks, which entries each cursor has acknowledged, properties. */
final class State {
    private State() {}

    static List<String> of(ManagedLedger ledger) throws Exception {
        List<String> lines = new ArrayList<>();
        String name = ledger.getName();
        lines.add(String.join("\t", name, "ledger", "terminated", String.valueOf(ledger.isTerminated())));
        new TreeMap<>(ledger.getProperties()).forEach((key, value) -> lines.add(String.join("\t", name, "property", key, value)));
        List<Position> positions = entries(ledger, lines);
        for (ManagedCursor cursor : ledger.getCursors()) {
            if (cursor.isDurable()) {
                of(cursor, name + "\tcursor " + cursor.getName() + "\t", positions, lines);
            }
        }
        Collections.sort(lines);
        return lines;
    }

    private static List<Position> entries(ManagedLedger ledger, List<String> lines) throws Exception {
        ManagedCursor reader = ledger.newNonDurableCursor(PositionFactory.EARLIEST);
        List<Position> positions = new ArrayList<>();
        while (reader.hasMoreEntries()) {
            for (Entry entry : reader.readEntries(100)) {
                Position position = PositionFactory.create(entry.getLedgerId(), entry.getEntryId());
                positions.add(position);
                String text = new String(entry.getData(), StandardCharsets.UTF_8);
                lines.add(String.join("\t", ledger.getName(), "entry", position.toString(), text));
                entry.release();
            }
        }
        reader.close();
        return positions;
    }

    private static void of(ManagedCursor cursor, String prefix, List<Position> positions, List<String> lines) {
        Position mark = cursor.getMarkDeletedPosition();
        lines.add(prefix + "mark\t" + mark);
        lines.add(prefix + "backlog\t" + cursor.getNumberOfEntriesInBacklog(true));
        cursor.getProperties().forEach((key, value) -> lines.add(prefix + "position property\t" + key + "\t" + value));
        cursor.getCursorProperties().forEach((key, value) -> lines.add(prefix + "cursor property\t" + key + "\t" + value));
        for (Position position : positions) {
            if (position.compareTo(mark) <= 0 || cursor.isMessageDeleted(position)) {
                lines.add(prefix + "acknowledged\t" + position);
            }
            long[] words = cursor.getDeletedBatchIndexesAsLongArray(position);
            if (words != null && words.length > 0) {
                String text = Arrays.stream(words).mapToObj(Long::toHexString).collect(Collectors.joining(" "));
                lines.add(prefix + "left of batch\t" + position + "\t" + text);
            }
        }
    }
}
