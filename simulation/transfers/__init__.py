"""Lives of clients that move tokens in transactions."""
