"""Other brokers of the cluster: membership and connections."""
