"""Security of a bookie's port: TLS, and the authentication of its peers."""
