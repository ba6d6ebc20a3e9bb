"""The four dispatchers as pure machines: who gets which entries (permits, priorities, keys, redelivery). No I/O, no clock."""
