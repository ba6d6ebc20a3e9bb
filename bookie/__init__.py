"""The storage node: journal (fsync before ack), sorted memtable, entry log, index, garbage collection. It knows no brokers."""
