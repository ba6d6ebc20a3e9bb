"""Loads of brokers and histories of bundles."""

from broker.service.load.loads import BrokerLoad, BundleHistory, BundleStats, Usage

MB = float(1 << 20)


def history(rate: float) -> BundleHistory:
    return BundleHistory().after(BundleStats(msg_rate_in=rate))


def load(usage: float, *throughputs: float) -> BrokerLoad:
    """Bundles `0`, `1`, ... with so many MB/s each."""
    bundles = {str(index): BundleStats(msg_throughput_in=each * MB) for index, each in enumerate(throughputs)}
    return BrokerLoad(Usage(usage), bundles)
