"""Virtual clock, seeded event loop, simulated network and disk, whole servers on them, faults and checkers."""
