"""Routes about clusters, brokers and bookies."""
