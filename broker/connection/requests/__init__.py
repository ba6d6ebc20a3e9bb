"""Requests that belong to no producer and no consumer: lookups, schemas, topic lists, transactions."""
