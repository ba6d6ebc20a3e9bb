"""The broker as a whole: lookup, topic names, loading and ownership of topics, partitioned topics, topic lists and watchers."""
