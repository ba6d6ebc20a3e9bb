"""Routes about transactions and their coordinators."""
