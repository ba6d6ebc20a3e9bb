"""`interpulse export-metadata` and `import-metadata`: a standalone's metadata moved into a cluster."""
