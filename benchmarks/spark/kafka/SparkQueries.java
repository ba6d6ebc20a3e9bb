// Queries of a local Spark, one for each line of stdin, with tabs between its five parts:
//   format of the source, its options (name=value, commas between), SQL expressions (semicolons between; none: all columns),
//   format of the sink, its options.
// Without a sink the first row is the answer. On stdout "ok" and the row's columns, tabs between. Argument: a scratch directory.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

public final class SparkQueries {
    private SparkQueries() {
    }

    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder().master("local[2]").appName("queries")
                .config("spark.local.dir", arguments[0]).config("spark.sql.warehouse.dir", arguments[0] + "/warehouse")
                .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.driver.host", "127.0.0.1").getOrCreate();
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println("ok" + answer(spark, line.split("\t", -1)));
            }
        } finally {
            spark.stop();
        }
    }

    private static String answer(SparkSession spark, String[] words) {
        Dataset<Row> frame = spark.read().format(words[0]).options(options(words[1])).load();
        if (!words[2].isEmpty()) {
            frame = frame.selectExpr(words[2].split(";"));
        }
        if (words[3].isEmpty()) {
            return "\t" + frame.first().mkString("\t");
        }
        String mode = words[3].equals("noop") ? "overwrite" : "append";
        frame.write().format(words[3]).options(options(words[4])).mode(mode).save();
        return "";
    }

    private static Map<String, String> options(String text) {
        Map<String, String> found = new HashMap<>();
        for (String each : text.isEmpty() ? new String[0] : text.split(",")) {
            String[] parts = each.split("=", 2);
            found.put(parts[0], parts[1]);
        }
        return found;
    }
}
