"""Producers of one connection: PRODUCER, SEND, CLOSE_PRODUCER and receipts."""
