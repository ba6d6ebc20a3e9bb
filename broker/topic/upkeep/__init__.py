"""Upkeep of a topic: effects of policies, and operators' changes to subscriptions."""
