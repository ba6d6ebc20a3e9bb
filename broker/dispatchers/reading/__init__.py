"""Reads of a dispatcher: the next one, what of a read can be delivered, and what is read again."""
