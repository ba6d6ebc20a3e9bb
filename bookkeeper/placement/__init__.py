"""Choice of bookies: racks, regions, zones, isolation groups, quarantine and free disk space."""
