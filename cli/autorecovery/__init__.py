"""`interpulse autorecovery`: an auditor and a replication worker."""
