"""Upkeep of a topic: where policies take effect, and what operators do to subscriptions."""
