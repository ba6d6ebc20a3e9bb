"""Logs in system topics that brokers write and read, whichever broker serves them."""
