"""Several servers of one kind on one machine: `--processes N` of a broker or a bookie."""
