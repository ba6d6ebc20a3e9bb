"""Snapshots of aborted transactions in Apache's formats, in the topics of each namespace where its brokers look for them."""
