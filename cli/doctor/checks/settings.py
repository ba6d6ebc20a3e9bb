"""Settings that contradict one another, or that an operator will regret. Pure: keys and values in, verdicts out."""

from collections.abc import Mapping

from cli.configuration.contradictions import Contradiction
from cli.doctor.check import FAIL, OK, WARN, Check, Verdict

Settings = Mapping[str, str]
FRAME_ROOM_BYTES = 10_240
PORTS = ("brokerServicePort", "webServicePort", "brokerServicePortTls", "webServicePortTls", "bookiePort", "httpServerPort")
QUORUMS = ("managedLedgerDefaultEnsembleSize", "managedLedgerDefaultWriteQuorum", "managedLedgerDefaultAckQuorum")
STANDALONE = "standalone"
_LOCAL = ("localhost", "127.0.0.1", "::1")


def _int(settings: Settings, key: str, default: int) -> int:
    try:
        return int(settings.get(key) or default)
    except ValueError:
        return default


def _float(settings: Settings, key: str, default: float) -> float:
    try:
        return float(settings.get(key) or default)
    except ValueError:
        return default


def _is(settings: Settings, key: str) -> bool:
    return settings.get(key, "").strip().lower() == "true"


def accepted(errors: tuple[str, ...]) -> Verdict:
    """Keys that would keep a process from starting, in its own words: unknown keys, and impossible values."""
    if not errors:
        return Verdict(OK, "a process starts with these settings")
    return Verdict(FAIL, f"{len(errors)} errors: {'; '.join(errors[:3])}", f"correct in the file: {errors[0]}")


def contradictions(found: tuple[Contradiction, ...]) -> Verdict:
    """A process starts with them; those with which it does not are among the errors."""
    if not found:
        return Verdict(OK, "no settings contradict each other")
    told = "; ".join(f"{', '.join(each.settings)}: {each.consequence}" for each in found[:3])
    return Verdict(WARN, told, f"{found[0].remedy} ({', '.join(found[0].settings)})")


def quorum_order(settings: Settings) -> Verdict:
    ensemble, write, ack = _quorums(settings)
    sound = ensemble >= write >= ack >= 1
    return Verdict(OK if sound else FAIL, f"ensemble {ensemble}, write quorum {write}, ack quorum {ack}")


def standalone_quorum(settings: Settings, kind: str) -> Verdict:
    """A standalone has one bookie; a file that leaves these keys out has its own defaults there."""
    wanted = {key: settings[key] for key in QUORUMS if settings.get(key, "").isdigit() and int(settings[key]) > 1}
    if kind != STANDALONE or not wanted:
        return Verdict(OK, "as many bookies are wanted as there are, as far as the settings say")
    keys = ", ".join(f"{key}={value}" for key, value in wanted.items())
    remedy = (
        f"set {', '.join(f'{key}=1' for key in wanted)} for a standalone; more copies need a cluster of bookies "
        "(interpulse devcluster)"
    )
    return Verdict(FAIL, f"{keys}, and a standalone has one bookie: it can write nothing", remedy)


def one_copy(settings: Settings) -> Verdict:
    ack = _quorums(settings)[2]
    alone = not settings.get("metadataStoreUrl", "").startswith("zk:")
    return Verdict(OK if ack > 1 or alone else WARN, f"a message is acknowledged when {ack} bookies have it")


def _quorums(settings: Settings) -> tuple[int, int, int]:
    ensemble, write, ack = (_int(settings, key, 2) for key in QUORUMS)
    return ensemble, write, ack


def ports_distinct(settings: Settings) -> Verdict:
    ports = {key: settings[key] for key in PORTS if settings.get(key) not in (None, "", "0")}
    twice = [key for key, port in ports.items() if list(ports.values()).count(port) > 1]
    return Verdict(
        FAIL if twice else OK, f"the same port: {', '.join(twice)}" if twice else f"{len(ports)} ports, all different"
    )


def retention_and_quota(settings: Settings) -> Verdict:
    retained_mb, minutes = _int(settings, "defaultRetentionSizeInMB", 0), _int(settings, "defaultRetentionTimeInMinutes", 0)
    quota_gb = _float(settings, "backlogQuotaDefaultLimitGB", -1)
    if (retained_mb == 0) != (minutes == 0):
        return Verdict(FAIL, f"retention of {minutes} minutes and {retained_mb} MB: with one of them 0 nothing is retained")
    if 0 < retained_mb <= quota_gb * 1024:
        return Verdict(FAIL, f"a backlog quota of {quota_gb} GB is not below a retention of {retained_mb} MB")
    return Verdict(OK, f"retention {minutes} minutes, {retained_mb} MB; backlog quota {quota_gb} GB")


def journal_synced(settings: Settings) -> Verdict:
    synced = settings.get("journalSyncData", "true").lower() == "true"
    return Verdict(OK if synced else WARN, f"journalSyncData={str(synced).lower()}")


def disk_thresholds(settings: Settings) -> Verdict:
    warn, limit = _float(settings, "diskUsageWarnThreshold", 0.95), _float(settings, "diskUsageThreshold", 0.95)
    return Verdict(OK if 0 < warn <= limit < 1 else FAIL, f"warned at {warn:.0%}, read-only at {limit:.0%}")


def message_size(settings: Settings) -> Verdict:
    size, frame = (
        _int(settings, "maxMessageSize", 5 << 20),
        _int(settings, "nettyMaxFrameSizeBytes", (5 << 20) + FRAME_ROOM_BYTES),
    )
    return Verdict(OK if size <= frame else FAIL, f"maxMessageSize {size}, nettyMaxFrameSizeBytes {frame}")


def authorization_without_authentication(settings: Settings) -> Verdict:
    authorized, authenticated = _is(settings, "authorizationEnabled"), _is(settings, "authenticationEnabled")
    evidence = f"authenticationEnabled={str(authenticated).lower()}, authorizationEnabled={str(authorized).lower()}"
    return Verdict(FAIL if authorized and not authenticated else OK, evidence)


def providers_named(settings: Settings) -> Verdict:
    named = settings.get("authenticationProviders", "").strip()
    level = FAIL if _is(settings, "authenticationEnabled") and not named else OK
    return Verdict(level, f"authenticationProviders={named or '(none)'}")


def open_to_everybody(settings: Settings) -> Verdict:
    address = settings.get("bindAddress", "127.0.0.1")
    open_ = address not in _LOCAL and not _is(settings, "authenticationEnabled")
    evidence = f"bindAddress={address}, authenticationEnabled={str(_is(settings, 'authenticationEnabled')).lower()}"
    return Verdict(WARN if open_ else OK, evidence)


def advertised_address(settings: Settings) -> Verdict:
    """Loopback is no fault where ZooKeeper is on loopback too: all of the cluster is on this machine."""
    address, bind = settings.get("advertisedAddress", ""), settings.get("bindAddress", "")
    if not is_spread(settings):
        return Verdict(OK, f"advertisedAddress={address or '(the host name)'}")
    if address in _LOCAL:
        return Verdict(FAIL, f"advertisedAddress={address}, and the cluster is on other machines: its clients cannot come here")
    if bind in _LOCAL:
        remedy = "set bindAddress=0.0.0.0, or to the address of this machine: other machines cannot connect to loopback"
        return Verdict(FAIL, f"bindAddress={bind}, and the cluster is on other machines", remedy)
    return Verdict(OK, f"advertisedAddress={address or '(the host name)'}, bindAddress={bind or '0.0.0.0'}")


def is_spread(settings: Settings) -> bool:
    """Whether metadata is on other machines than this one."""
    url = settings.get("metadataStoreUrl") or settings.get("metadataServiceUri") or settings.get("zookeeperServers", "")
    hosts = url.removeprefix("metadata-store:").removeprefix("zk:").rpartition("//")[2].partition("/")[0]
    named = [each.rpartition(":")[0] or each for each in hosts.replace(";", ",").split(",") if each]
    return any(host not in _LOCAL and not host.startswith("127.") for host in named)


def sessions_and_ticks(settings: Settings) -> Verdict:
    session_ms = _int(settings, "metadataStoreSessionTimeoutMillis", 10_000)
    return Verdict(WARN if session_ms < 4_000 else OK, f"a session of {session_ms} ms")


def ports_listening(silent: tuple[str, ...]) -> Verdict:
    """Ports of a server that runs with this file, as it says."""
    if not silent:
        return Verdict(OK, "every port of these settings is open")
    remedy = (
        f"restart the server with this file, and read its log: no process listens on {silent[0]}. If it is another server, "
        "give its file"
    )
    return Verdict(FAIL, f"the server answers, but not on {', '.join(silent)}", remedy)


def ports_free(taken: tuple[str, ...]) -> Verdict:
    evidence = f"taken by another process: {', '.join(taken)}" if taken else "all are free, or our own server has them"
    return Verdict(FAIL if taken else OK, evidence)


_S = ("settings",)
CHECKS = (
    Check(
        "settings-accepted", ("settings_errors",), accepted, "a process refuses these settings", "correct the key that is named"
    ),
    Check(
        "settings-contradict", ("contradictions",), contradictions, "two settings defeat each other", "change one of the two"
    ),
    Check(
        "standalone-quorum",
        ("settings", "kind"),
        standalone_quorum,
        "a standalone wants more copies than it has bookies",
        "set managedLedgerDefaultEnsembleSize, -WriteQuorum and -AckQuorum to 1",
    ),
    Check(
        "quorum-order",
        _S,
        quorum_order,
        "quorums that cannot be",
        "ensemble size >= write quorum >= ack quorum >= 1: change managedLedgerDefaultEnsembleSize, -WriteQuorum or -AckQuorum",
    ),
    Check(
        "one-copy",
        _S,
        one_copy,
        "one lost disk loses messages",
        "set managedLedgerDefaultAckQuorum=2 or more: one lost disk loses messages",
    ),
    Check("ports-distinct", _S, ports_distinct, "one port for two listeners", "give each of these keys a port of its own"),
    Check(
        "ports-free",
        ("taken_ports",),
        ports_free,
        "another process has a port",
        "stop who listens there (ss -ltnp names the process), or choose another port for this key",
    ),
    Check(
        "ports-listening",
        ("silent_ports",),
        ports_listening,
        "a server that runs has a port closed",
        "restart it with this file",
    ),
    Check(
        "retention-and-quota",
        _S,
        retention_and_quota,
        "a retention that retains nothing, or is below the quota",
        "set both of defaultRetentionTimeInMinutes and defaultRetentionSizeInMB (-1: no limit), above "
        "backlogQuotaDefaultLimitGB",
    ),
    Check(
        "journal-synced",
        _S,
        journal_synced,
        "acknowledged before it is on the disk",
        "set journalSyncData=true: a power failure loses acknowledged messages",
    ),
    Check(
        "disk-thresholds",
        _S,
        disk_thresholds,
        "thresholds that cannot be",
        "set diskUsageWarnThreshold <= diskUsageThreshold, both between 0 and 1",
    ),
    Check(
        "message-size",
        _S,
        message_size,
        "bookies refuse the largest messages",
        "raise nettyMaxFrameSizeBytes of every bookie above maxMessageSize",
    ),
    Check(
        "authorization-without-authentication",
        _S,
        authorization_without_authentication,
        "authorization, and nobody has a role",
        "set authenticationEnabled=true: without it nobody has a role that could be allowed anything",
    ),
    Check("providers-named", _S, providers_named, "authentication without a provider", "name them in authenticationProviders"),
    Check(
        "open-to-everybody",
        _S,
        open_to_everybody,
        "anybody may connect and do everything",
        "set authenticationEnabled=true, or bindAddress=127.0.0.1",
    ),
    Check(
        "advertised-address",
        _S,
        advertised_address,
        "an address that others cannot reach",
        "set advertisedAddress to a name that clients and other brokers reach",
    ),
    Check(
        "session-length",
        _S,
        sessions_and_ticks,
        "a session so short that a pause ends it",
        "set metadataStoreSessionTimeoutMillis to 10000: a pause costs the broker its topics",
    ),
)
