"""A topic: its producers, its subscriptions, their cursors, and the drivers that perform dispatchers' decisions."""
