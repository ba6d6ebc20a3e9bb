"""The auditor: election, lost bookies, and marking of ledgers that lack copies."""
