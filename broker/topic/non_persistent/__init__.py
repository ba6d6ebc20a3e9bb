"""Non-persistent topics: what is published goes to whoever is there and has asked for more, or is dropped."""
