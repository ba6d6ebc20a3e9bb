"""Publishing: admission of producers, the way of a message to the log and of its receipt back, and deduplication."""
