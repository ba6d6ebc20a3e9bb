"""Who may speak to a bookie, and in what: TLS on its port, and the authentication of its peers."""
