"""The four dispatchers as pure machines: the consumer of each entry (permits, priorities, keys, redelivery). No I/O, no
clock.
"""
