"""Delayed messages of a dispatcher: which entries wait for their time, and which of them are to be stored."""
