"""Simulated disks: files, page cache, power cuts, and disks without room."""
