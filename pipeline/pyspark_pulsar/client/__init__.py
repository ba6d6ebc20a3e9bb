"""Brokers as a reader needs them: the binary protocol over one blocking socket, and two questions over HTTP."""
