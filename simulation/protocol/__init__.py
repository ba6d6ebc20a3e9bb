"""The ledger protocol, explored exhaustively within small bounds."""
