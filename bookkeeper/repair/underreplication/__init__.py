"""The under-replication tree in the metadata store, shared with Apache's auditors and workers."""
