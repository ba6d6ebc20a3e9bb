"""Copies of messages from topics to topics, without Spark."""
