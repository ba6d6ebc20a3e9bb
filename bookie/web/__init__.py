"""What a bookie says over HTTP: whether it lives, its state, its files, its metrics, and what `cluster_port` does for it.

It changes no entry.
"""
