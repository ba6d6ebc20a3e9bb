"""Reading entries of closed ledgers and of ledgers that another client writes."""
