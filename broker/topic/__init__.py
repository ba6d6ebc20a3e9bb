"""A topic: its producers, its subscriptions, their cursors, and the drivers that carry out what dispatchers decide."""
