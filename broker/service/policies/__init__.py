"""Policies of namespaces and topics: storage in metadata and `__change_events`, and enforcement on loaded topics."""
