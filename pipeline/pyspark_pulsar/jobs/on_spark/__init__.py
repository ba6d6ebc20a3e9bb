"""Jobs that run on Spark, and the parts of them that need it."""
