"""`bookkeeper shell`: BookKeeper's BookieShell, its names of commands and options, its exit codes, an output like its own.

`commands` is the table of all; one module has the code of each group, imported only when one of its commands is called.
Work that the shell and a bookie's HTTP share is in `cli.bookkeeper_cluster`.
"""
