"""Simulated clients: connections, producers, consumers, and the wire format that they speak."""
