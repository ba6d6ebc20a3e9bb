"""Repair of one ledger: its fragments, the plan, probes of copies, copying, and the driver of these."""
