import java.util.Arrays;
import org.apache.bookkeeper.bookie.BookieShell;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.util.EntryFormatter;
import org.apache.bookkeeper.util.LedgerIdFormatter;
import org.apache.commons.configuration2.CompositeConfiguration;

/** Apache's BookieShell, several commands in one process: the metadata service URI, then each command as one argument. */
public final class Commands {
    private Commands() {
    }

    public static void main(String[] arguments) throws Exception {
        CompositeConfiguration configuration = new CompositeConfiguration();
        configuration.setProperty("metadataServiceUri", arguments[0]);
        ServerConfiguration defaults = new ServerConfiguration();
        for (String command : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            BookieShell shell = new BookieShell(
                    LedgerIdFormatter.newLedgerIdFormatter(defaults), EntryFormatter.newEntryFormatter(defaults));
            shell.setConf(configuration);
            System.out.println("begin " + command);
            int code = shell.run(command.split(" "));
            System.out.println("code " + code);
        }
        System.exit(0); // the client's threads are no daemons
    }
}
