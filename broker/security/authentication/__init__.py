"""Authentication: credentials of a peer and the role that they prove."""
