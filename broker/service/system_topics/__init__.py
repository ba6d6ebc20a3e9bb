"""Logs in system topics that brokers write and read, served here or by another broker."""
