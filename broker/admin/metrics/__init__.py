"""GET /metrics: the metrics of a broker in Prometheus' text form."""
