"""Files on disks: the port, the machine's file system, transfers beside the page cache, room kept back."""
