"""Identity of peers, and their permissions. Deciders are pure; the one driver reads tenants and namespaces from metadata."""
