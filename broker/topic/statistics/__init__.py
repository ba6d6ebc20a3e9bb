"""Statistics of a topic: counters, rates, and the values that administrators see. Pure."""
