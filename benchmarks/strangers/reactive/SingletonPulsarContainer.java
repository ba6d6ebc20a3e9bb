package org.apache.pulsar.reactive.client.adapter;

import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/** In place of the class of this name that starts a container: clients of the broker that the system's properties name. */
final class SingletonPulsarContainer {
    private SingletonPulsarContainer() {
    }

    static PulsarClient createPulsarClient() throws PulsarClientException {
        return PulsarClient.builder().serviceUrl(System.getProperty("strangers.broker")).build();
    }

    static PulsarAdmin createPulsarAdmin() throws PulsarClientException {
        return PulsarAdmin.builder().serviceHttpUrl(System.getProperty("strangers.web")).build();
    }
}
