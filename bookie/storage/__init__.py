"""Ledger storage: entry logs of sorted blocks, an index of one record per block, and a checkpoint that names them."""
