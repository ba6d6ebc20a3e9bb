"""The simulated world: virtual time, chance, hosts, network, and the record of a run."""
