"""Who somebody is, and what they may do. Deciders are pure; the one driver reads tenants and namespaces from metadata."""
