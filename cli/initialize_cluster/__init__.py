"""`interpulse initialize-cluster-metadata`: the metadata of a new cluster."""
