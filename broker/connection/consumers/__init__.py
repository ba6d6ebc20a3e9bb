"""Consumers of one connection: SUBSCRIBE, FLOW, ACK and the requests about a consumer."""
