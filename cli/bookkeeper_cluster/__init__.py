"""A cluster of bookies as tools see it: for the commands of the shell and for a bookie's HTTP."""
