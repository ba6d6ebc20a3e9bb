"""`interpulse config check | diff | explain`: what a configuration would do, told without starting anything.

Exit codes: 0 for a configuration that a process would start with, 1 for one that it would refuse, 2 for a file that cannot be
read.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from cli.configuration.keys import apache_broker_keys
from cli.configuration.report import (
    SETTINGS,
    Explanation,
    Report,
    default_of,
    explain,
    kind_of,
    of_another_program,
    report,
)
from cli.configuration.verdicts import Verdict, same_value
from ports.settings import BadSetting, shown_value


def run_config(options: argparse.Namespace) -> int:
    if options.config_command == "explain":
        return _explain(options.key, as_json=options.json)
    path = Path(options.file)
    if told := of_another_program(path.name):
        print(f"{path.name}: {told}")
        return 0
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        print(f"interpulse config: {path}: {error}", file=sys.stderr)
        return 2
    found = report(path.name, text, options.set, options.kind or kind_of(path.name))
    if options.config_command == "diff":
        return _diff(found, as_json=options.json)
    return _check(found, as_json=options.json)


def _check(found: Report, *, as_json: bool) -> int:
    if as_json:
        judged = [{"key": one.key, "verdict": one.verdict.value, "reason": one.reason} for one in found.judged]
        print(json.dumps({"kind": found.kind, "errors": found.errors, "warnings": found.warnings, "keys": judged}, indent=2))
        return 1 if found.errors else 0
    for error in found.errors:
        print(f"error: {error}")
    for warning in found.warnings:
        print(f"warning: {warning}")
    by_reason: dict[str, list[str]] = {}
    for one in found.judged:
        if one.verdict is Verdict.WITHOUT_EFFECT:
            by_reason.setdefault(one.reason, []).append(one.key)
    for reason, keys in by_reason.items():
        print(f"no effect: {', '.join(keys)}: {reason}")
    counts = {verdict: sum(one.verdict is verdict for one in found.judged) for verdict in Verdict}
    told = ", ".join(
        f"{count} {'are ' if verdict is Verdict.REFUSED else ''}{_plural(verdict)}" for verdict, count in counts.items()
    )
    print(f"a {found.kind} would {'refuse this' if found.errors else 'start with this'}; of {len(found.judged)} keys {told}")
    return 1 if found.errors else 0


def _plural(verdict: Verdict) -> str:
    return {Verdict.IN_EFFECT: "take effect", Verdict.WITHOUT_EFFECT: "mean nothing here", Verdict.REFUSED: "refused"}[verdict]


def _diff(found: Report, *, as_json: bool) -> int:
    rows = []
    for one in found.judged:
        apache = apache_broker_keys().get(one.key)
        default = default_of(one.key, SETTINGS[found.kind])
        compared = default if default is not None else apache.default if apache else ""
        if not same_value(found.values[one.key], compared):
            value = shown_value(one.key, found.values[one.key])
            rows.append((one.key, value, default, apache.default if apache else None, one.verdict.value))
    if as_json:
        names = ("key", "value", "default", "apacheDefault", "verdict")
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
    for key, value, default, apache_default, verdict in [] if as_json else rows:
        ours = f"default {default or 'empty'}" if default is not None else verdict
        theirs = f", Apache's {apache_default or 'empty'}" if apache_default not in (None, default) else ""
        print(f"{key}={value} ({ours}{theirs})")
    return 1 if found.errors else 0


def _explain(key: str, *, as_json: bool) -> int:
    try:
        found = explain(key)
    except BadSetting as error:
        print(f"interpulse config: {error}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=2))
    else:
        print("\n".join(_lines(found)))
    return 0


def _lines(found: Explanation) -> list[str]:
    lines = [found.key]
    if found.read_by:
        lines += [found.note, f"value: {found.form}"]
        lines.append(f"takes effect in: {', '.join(found.read_by)}; default: {found.default or 'empty'}")
    lines.append(f"Apache's default: {found.apache_default or 'empty'}" + (f" (ours: {found.why})" if found.why else ""))
    if found.dynamic and found.at_start_only:
        lines.append("read when a broker starts: set it in its file and restart the brokers, one by one")
    elif found.dynamic and found.read_by:
        lines.append("changes while brokers run: pulsar-admin brokers update-dynamic-config")
    return [*lines, *found.reasons]
