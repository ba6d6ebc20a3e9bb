"""Publishing: who may publish, the way of a message to the log and of its receipt back, and deduplication."""
