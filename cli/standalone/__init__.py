"""`interpulse standalone`: broker, bookie and metadata in one process."""
