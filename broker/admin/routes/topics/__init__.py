"""Routes about topics, subscriptions, messages and schemas."""
