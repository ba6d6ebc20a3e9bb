"""What metrics count: histograms, operation statistics, usage of the machine."""
