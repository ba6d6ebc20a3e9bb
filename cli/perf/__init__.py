"""`pulsar-perf`: produce, consume, read and transaction as fast as asked for, with progress, a table and --json.

One topic, one connection, payloads prepared once: the tool costs little beside the server that it measures. It uses the
connection of `cli.client`; `latencies` is pure.
"""
