"""Lives of a ledger, and of a managed ledger with its cursors, on one bookie."""
