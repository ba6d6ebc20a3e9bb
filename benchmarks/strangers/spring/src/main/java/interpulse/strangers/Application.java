package interpulse.strangers;

import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.RedeliveryBackoff;
import org.apache.pulsar.client.impl.MultiplierRedeliveryBackoff;
import org.apache.pulsar.reactive.client.adapter.AdaptedReactivePulsarClientFactory;
import org.apache.pulsar.reactive.client.api.ReactivePulsarClient;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.pulsar.annotation.EnablePulsar;

/** An application as Spring's guides write one; {@link Checks} runs in it and says what passed. */
@SpringBootApplication
@EnablePulsar
public class Application {
    static final int DELIVERIES_MAX = 2;

    @Bean
    DeadLetterPolicy deadLetterPolicy() {
        return DeadLetterPolicy.builder().maxRedeliverCount(DELIVERIES_MAX).deadLetterTopic(Checks.DEAD_LETTERS).build();
    }

    @Bean
    RedeliveryBackoff redeliveryBackoff() {
        return MultiplierRedeliveryBackoff.builder().minDelayMs(100).maxDelayMs(500).multiplier(2).build();
    }

    @Bean
    ReactivePulsarClient reactivePulsarClient(PulsarClient client) {
        return AdaptedReactivePulsarClientFactory.create(client);
    }

    public static void main(String[] arguments) {
        System.exit(SpringApplication.exit(SpringApplication.run(Application.class, arguments)));
    }
}
