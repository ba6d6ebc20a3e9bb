"""Topics as Arrow data, without Spark: types of columns, what a batch reads, and its record batches.

What is here is used by the data source on Spark (`spark`) and by `pulsar_frames`, so that both read the same.
"""
