"""Topics as Arrow data, without Spark: types of columns, what a batch reads, and its record batches.

The data source on Spark (`spark`) and `pulsar_frames` both use this package, so that both read the same.
"""
