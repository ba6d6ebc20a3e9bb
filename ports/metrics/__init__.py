"""Values of metrics: histograms, operation statistics, usage of the machine."""
