"""Load of a broker and of its bundles, as values and as Apache writes them (LocalBrokerData, BundleData). Pure.

Rates are messages per second, throughput is bytes per second. Usage is a share from 0 to 1 of the machine's capacity.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from metadata.store import MetadataError
from wire.record import record

from ..catalogue.namespaces import to_json

SHORT_SAMPLES, LONG_SAMPLES = 10, 1000
"""Apache's loadManager short and long term: number of reports in a mean."""


@record(frozen=True, slots=True)
class Traffic:
    """Rates of messages and bytes, in and out."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0

    @property
    def msg_rate(self) -> float:
        return self.msg_rate_in + self.msg_rate_out

    @property
    def msg_throughput(self) -> float:
        return self.msg_throughput_in + self.msg_throughput_out


@record(frozen=True, slots=True)
class BundleStats(Traffic):
    """Apache's NamespaceBundleStats."""

    topics: int = 0
    consumer_count: int = 0
    producer_count: int = 0

    def plus(self, other: "BundleStats") -> "BundleStats":
        return BundleStats(
            self.msg_rate_in + other.msg_rate_in,
            self.msg_rate_out + other.msg_rate_out,
            self.msg_throughput_in + other.msg_throughput_in,
            self.msg_throughput_out + other.msg_throughput_out,
            self.topics + other.topics,
            self.consumer_count + other.consumer_count,
            self.producer_count + other.producer_count,
        )


@record(frozen=True, slots=True)
class Usage:
    """Usage of a machine, as shares of its limits; a limit that is not known counts as never reached."""

    cpu: float = 0.0
    memory: float = 0.0
    bandwidth_in: float = 0.0
    bandwidth_out: float = 0.0

    @property
    def greatest(self) -> float:
        return max(self.cpu, self.memory, self.bandwidth_in, self.bandwidth_out)


@record(frozen=True, slots=True)
class BrokerLoad:
    """A broker's report."""

    usage: Usage = field(default_factory=Usage)
    bundles: Mapping[str, BundleStats] = field(default_factory=dict)
    """Stats of bundles by name, `tenant/namespace/0x00000000_0x40000000`."""
    updated_ms: int = 0

    @property
    def total(self) -> BundleStats:
        total = BundleStats()
        for stats in self.bundles.values():
            total = total.plus(stats)
        return total

    def changed_share(self, other: "BrokerLoad") -> float:
        """Returns the greatest relative change (1: as much again as before); growth from zero counts as 1."""
        mine, others = self.total, other.total
        pairs = (
            (self.usage.greatest, other.usage.greatest),
            (mine.msg_rate, others.msg_rate),
            (mine.msg_throughput, others.msg_throughput),
            (float(len(self.bundles)), float(len(other.bundles))),
        )
        return max(_change(before, after) for before, after in pairs)


def _change(before: float, after: float) -> float:
    return abs(after - before) / before if before else float(after > 0)


@record(frozen=True, slots=True)
class Mean(Traffic):
    """Apache's TimeAverageMessageData: a mean over the last reports, so many at most, which gives way slowly."""

    samples_max: int = field(kw_only=True)
    samples: int = 0

    def after(self, stats: BundleStats) -> "Mean":
        """Returns the mean with one report more."""
        count = min(self.samples + 1, self.samples_max)

        def mean(old: float, new: float) -> float:
            return ((count - 1) * old + new) / count

        return Mean(
            mean(self.msg_rate_in, stats.msg_rate_in),
            mean(self.msg_rate_out, stats.msg_rate_out),
            mean(self.msg_throughput_in, stats.msg_throughput_in),
            mean(self.msg_throughput_out, stats.msg_throughput_out),
            count,
            samples_max=self.samples_max,
        )


@record(frozen=True, slots=True)
class BundleHistory:
    """Recent and long-term load of a bundle; it goes with the bundle from broker to broker."""

    short: Mean = Mean(samples_max=SHORT_SAMPLES)
    long: Mean = Mean(samples_max=LONG_SAMPLES)
    topics: int = 0

    def after(self, stats: BundleStats) -> "BundleHistory":
        return BundleHistory(self.short.after(stats), self.long.after(stats), stats.topics)


# Apache's forms


def encode_history(history: BundleHistory) -> bytes:
    """BundleData."""
    value = {"shortTermData": _mean(history.short), "longTermData": _mean(history.long), "topics": history.topics}
    return to_json(value)


def decode_history(value: bytes) -> BundleHistory:
    """MetadataError."""
    try:
        found = json.loads(value)
        short, long = found["shortTermData"], found["longTermData"]
        return BundleHistory(_parse_mean(short), _parse_mean(long), int(found.get("topics", 0)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MetadataError(f"unreadable data of a bundle: {error!r}") from error


def _mean(mean: Mean) -> dict[str, Any]:
    return {
        "maxSamples": mean.samples_max,
        "numSamples": mean.samples,
        "msgThroughputIn": mean.msg_throughput_in,
        "msgThroughputOut": mean.msg_throughput_out,
        "msgRateIn": mean.msg_rate_in,
        "msgRateOut": mean.msg_rate_out,
    }


def _parse_mean(fields: Mapping[str, Any]) -> Mean:
    return Mean(
        float(fields["msgRateIn"]),
        float(fields["msgRateOut"]),
        float(fields["msgThroughputIn"]),
        float(fields["msgThroughputOut"]),
        int(fields["numSamples"]),
        samples_max=int(fields["maxSamples"]),
    )


def load_fields(load: BrokerLoad) -> dict[str, Any]:
    """The fields of LocalBrokerData that change."""
    total, usage = load.total, load.usage
    return {
        "cpu": _percent(usage.cpu),
        "memory": _percent(usage.memory),
        "directMemory": _percent(0.0),
        "bandwidthIn": _percent(usage.bandwidth_in),
        "bandwidthOut": _percent(usage.bandwidth_out),
        "msgThroughputIn": total.msg_throughput_in,
        "msgThroughputOut": total.msg_throughput_out,
        "msgRateIn": total.msg_rate_in,
        "msgRateOut": total.msg_rate_out,
        "lastUpdate": load.updated_ms,
        "lastStats": {name: _stats(stats) for name, stats in load.bundles.items()},
        "numTopics": total.topics,
        "numBundles": len(load.bundles),
        "numConsumers": total.consumer_count,
        "numProducers": total.producer_count,
        "bundles": sorted(load.bundles),
    }


def decode_load(value: bytes) -> BrokerLoad:
    """Returns the load in LocalBrokerData, ours and Apache's. MetadataError."""
    try:
        found = json.loads(value)
        usage = Usage(*(_share(found.get(name)) for name in ("cpu", "memory", "bandwidthIn", "bandwidthOut")))
        bundles = {name: _parse_stats(stats) for name, stats in (found.get("lastStats") or {}).items()}
        return BrokerLoad(usage, bundles, int(found.get("lastUpdate") or 0))
    except (ValueError, TypeError, AttributeError) as error:
        raise MetadataError(f"unreadable load report: {error!r}") from error


def _percent(share: float) -> dict[str, float]:
    return {"usage": 100 * share, "limit": 100.0}


def _share(resource: Mapping[str, Any] | None) -> float:
    limit = float(resource.get("limit") or 0.0) if resource else 0.0
    return float(resource.get("usage") or 0.0) / limit if resource and limit > 0 else 0.0


def _stats(stats: BundleStats) -> dict[str, Any]:
    return {
        "msgRateIn": stats.msg_rate_in,
        "msgThroughputIn": stats.msg_throughput_in,
        "msgRateOut": stats.msg_rate_out,
        "msgThroughputOut": stats.msg_throughput_out,
        "consumerCount": stats.consumer_count,
        "producerCount": stats.producer_count,
        "topics": stats.topics,
        "cacheSize": 0,
    }


def _parse_stats(fields: Mapping[str, Any]) -> BundleStats:
    return BundleStats(
        float(fields.get("msgRateIn") or 0.0),
        float(fields.get("msgRateOut") or 0.0),
        float(fields.get("msgThroughputIn") or 0.0),
        float(fields.get("msgThroughputOut") or 0.0),
        int(fields.get("topics") or 0),
        int(fields.get("consumerCount") or 0),
        int(fields.get("producerCount") or 0),
    )
