// Publishes at a paced rate to several topics in turn until its input ends; a line on stdout for each answer.
// Arguments: service URL, messages a second, send time-out in milliseconds, topics. Times are System.nanoTime().
// A message begins with its number (8 bytes, big endian), which the line of its answer names.

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;

public final class PacedProducer {
    public static void main(String[] arguments) throws Exception {
        AtomicBoolean ends = new AtomicBoolean();
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (java.io.IOException closed) {
                System.err.println(closed);
            }
            ends.set(true);
        });
        watcher.setDaemon(true);
        watcher.start();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            publish(client, arguments, ends);
        }
    }

    private static void publish(PulsarClient client, String[] arguments, AtomicBoolean ends) throws Exception {
        List<Producer<byte[]>> producers = new ArrayList<>();
        for (int each = 3; each < arguments.length; each++) {
            producers.add(client.newProducer().topic(arguments[each]).enableBatching(false).maxPendingMessages(50_000)
                    .sendTimeout(Integer.parseInt(arguments[2]), TimeUnit.MILLISECONDS).create());
        }
        long step = (long) (1e9 / Double.parseDouble(arguments[1]));
        long due = System.nanoTime();
        for (long number = 0; !ends.get(); number++, due += step) {
            long left = due - System.nanoTime();
            if (left > 0) {
                TimeUnit.NANOSECONDS.sleep(left);
            }
            int topic = (int) (number % producers.size());
            send(producers.get(topic), topic, due, number);
        }
    }

    private static void send(Producer<byte[]> producer, int topic, long due, long number) {
        byte[] payload = ByteBuffer.allocate(1024).putLong(number).array();
        producer.sendAsync(payload).whenComplete((id, error) -> {
            String line = error == null
                    ? "answered " + topic + " " + due + " " + (System.nanoTime() - due) + " " + number
                    : "failed " + topic + " " + error;
            synchronized (System.out) {
                System.out.println(line);
            }
        });
    }
}
