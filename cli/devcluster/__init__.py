"""`interpulse devcluster`: a whole cluster of processes on one machine, for developers."""
