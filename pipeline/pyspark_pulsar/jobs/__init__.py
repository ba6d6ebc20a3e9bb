"""Jobs on a broker's data: `bin/pulsar-pipeline JOB`, or `python -m pyspark_pulsar.jobs JOB` where the package is installed."""
