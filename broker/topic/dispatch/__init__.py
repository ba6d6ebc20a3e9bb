"""Dispatching: the driver that performs a dispatcher's decisions, and the way of runs to connections."""
