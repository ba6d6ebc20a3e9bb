"""HTTP of a bookie: heartbeat, state, files, metrics, and the cluster's operations through `cluster_port`.

It changes no entry.
"""
