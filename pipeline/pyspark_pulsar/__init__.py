"""Topics of Apache Pulsar and Magnetar as tables on Spark. What decodes them needs numpy and pyarrow, not Spark."""
