"""Settings that contradict one another, or that somebody will regret. Pure: keys and values in, verdicts out."""

from collections.abc import Mapping

from cli.doctor.checks import FAIL, OK, WARN, Check, Verdict

Settings = Mapping[str, str]
FRAME_ROOM_BYTES = 10_240
PORTS = ("brokerServicePort", "webServicePort", "brokerServicePortTls", "webServicePortTls", "bookiePort", "httpServerPort")
FILES = ("tlsCertificateFilePath", "tlsKeyFilePath", "tlsTrustCertsFilePath")
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


def quorum_order(settings: Settings) -> Verdict:
    ensemble, write, ack = (
        _int(settings, f"managedLedgerDefault{name}", 2) for name in ("EnsembleSize", "WriteQuorum", "AckQuorum")
    )
    sound = ensemble >= write >= ack >= 1
    return Verdict(OK if sound else FAIL, f"ensemble {ensemble}, write quorum {write}, ack quorum {ack}")


def one_copy(settings: Settings) -> Verdict:
    ack = _int(settings, "managedLedgerDefaultAckQuorum", 2)
    alone = not settings.get("metadataStoreUrl", "").startswith("zk:")
    return Verdict(OK if ack > 1 or alone else WARN, f"a message is acknowledged when {ack} bookies have it")


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
    address, in_cluster = settings.get("advertisedAddress", ""), settings.get("metadataStoreUrl", "").startswith("zk:")
    return Verdict(FAIL if in_cluster and address in _LOCAL else OK, f"advertisedAddress={address or '(the host name)'}")


def sessions_and_ticks(settings: Settings) -> Verdict:
    session_ms = _int(settings, "metadataStoreSessionTimeoutMillis", 10_000)
    return Verdict(WARN if session_ms < 4_000 else OK, f"a session of {session_ms} ms")


def tls_files(unreadable: tuple[str, ...]) -> Verdict:
    return (
        Verdict(FAIL, f"cannot be read: {', '.join(unreadable)}")
        if unreadable
        else Verdict(OK, "all that are named can be read")
    )


def ports_free(taken: tuple[str, ...]) -> Verdict:
    evidence = f"taken by another process: {', '.join(taken)}" if taken else "all are free, or our own server has them"
    return Verdict(FAIL if taken else OK, evidence)


_S = ("settings",)
CHECKS = (
    Check("quorum-order", _S, quorum_order, "ensemble size >= write quorum >= ack quorum >= 1: change managedLedgerDefault..."),
    Check("one-copy", _S, one_copy, "set managedLedgerDefaultAckQuorum=2 or more: one lost disk loses messages"),
    Check("ports-distinct", _S, ports_distinct, "give each of these keys a port of its own"),
    Check("ports-free", ("taken_ports",), ports_free, "stop who listens there (ss -ltnp), or choose another port"),
    Check(
        "retention-and-quota", _S, retention_and_quota, "set both limits of retention (-1 for none), above the backlog quota"
    ),
    Check("journal-synced", _S, journal_synced, "set journalSyncData=true: a power failure loses acknowledged messages"),
    Check("disk-thresholds", _S, disk_thresholds, "diskUsageWarnThreshold <= diskUsageThreshold, both between 0 and 1"),
    Check("message-size", _S, message_size, "raise nettyMaxFrameSizeBytes of every bookie above maxMessageSize"),
    Check(
        "authorization-without-authentication",
        _S,
        authorization_without_authentication,
        "set authenticationEnabled=true: without it nobody has a role that could be allowed anything",
    ),
    Check("providers-named", _S, providers_named, "name them in authenticationProviders"),
    Check("open-to-everybody", _S, open_to_everybody, "set authenticationEnabled=true, or bindAddress=127.0.0.1"),
    Check("advertised-address", _S, advertised_address, "set advertisedAddress to a name that clients and other brokers reach"),
    Check(
        "session-length",
        _S,
        sessions_and_ticks,
        "set metadataStoreSessionTimeoutMillis to 10000: a pause costs the broker its topics",
    ),
    Check("tls-files", ("unreadable_tls_files",), tls_files, "correct the paths, and let the server's user read them"),
)
