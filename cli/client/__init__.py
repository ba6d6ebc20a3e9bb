"""`pulsar-client`: produce, consume, read; on a small client of our own over `wire`.

`connection` is one blocking connection, `topic` finds the broker of a topic, `received` takes a message apart; the commands are
in `produce` and `consume`. It sends no batches, knows no schemas beyond bytes and strings,
and no encryption: those are refused by name.
"""
