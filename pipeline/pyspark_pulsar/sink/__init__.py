"""Frames into topics.

Rows become batches of messages by vector operations, and are published with the guarantee that is asked.
"""
