"""Dispatching: the driver that performs what a dispatcher decides, and the way of runs to connections."""
