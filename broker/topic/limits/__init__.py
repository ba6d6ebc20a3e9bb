"""Limits at work: rates of publishing, dispatching and subscribing, and unacknowledged messages."""
