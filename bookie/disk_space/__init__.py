"""Free space of a bookie's disks: watching it, and refusing adds when it runs out."""
