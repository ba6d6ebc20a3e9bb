"""The proxy: clients that reach only this host find every broker behind it. It holds no state and imports no topic."""
