"""Routes about tenants, namespaces, their policies and bundles."""
