"""Stateless brokers: connections, topics, subscriptions and their four dispatchers, lookup, admin REST."""
