import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/**
 * Apache's Java client with a token over TLS. A line says what became of each of three clients: one that may, one that may
 * not, and one whose token is not known.
 */
class Secured {
  static final String TOPIC = System.getenv("TOPIC");

  static PulsarClient connect(String token) throws PulsarClientException {
    return PulsarClient.builder()
        .serviceUrl(System.getenv("URL"))
        .authentication(AuthenticationFactory.token(token))
        .tlsTrustCertsFilePath(System.getenv("TRUST"))
        .enableTlsHostnameVerification(true)
        .operationTimeout(30, TimeUnit.SECONDS)
        .build();
  }

  static String exchanged() throws Exception {
    try (var client = connect(System.getenv("ALLOWED"));
        var consumer = client.newConsumer().topic(TOPIC).subscriptionName("java").subscribe();
        var producer = client.newProducer().topic(TOPIC).create()) {
      producer.send("there and back".getBytes());
      return new String(consumer.receive(30, TimeUnit.SECONDS).getData());
    }
  }

  static String refused(String token) throws Exception {
    try (var client = connect(token)) {
      client.newProducer().topic(TOPIC).create().close();
      return "let in";
    } catch (PulsarClientException error) {
      return error.getClass().getSimpleName();
    }
  }

  public static void main(String[] words) throws Exception {
    System.out.println("allowed=" + exchanged());
    System.out.println("denied=" + refused(System.getenv("DENIED")));
    System.out.println("unknown=" + refused(System.getenv("UNKNOWN")));
    System.exit(0);
  }
}
