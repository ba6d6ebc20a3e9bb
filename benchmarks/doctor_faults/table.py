"""The table of outcomes, for a terminal and for docs/results. Pure."""

from collections.abc import Sequence

from benchmarks.doctor_faults.fault import Outcome

RATE_MIN = 0.95
Outcomes = Sequence[tuple[str, Outcome]]


def one_line(outcome: Outcome) -> str:
    """With what the doctor said, where that was not what is expected."""
    fault = outcome.fault
    if not fault.check:
        verdict = "silent" if outcome.is_right else "FALSE ALARM"
    else:
        verdict = (
            f"{'named' if outcome.is_named else 'NOT NAMED'}, {'remedy right' if outcome.is_remedy_right else 'REMEDY WRONG'}"
        )
    line = f"{fault.name:<58} {fault.check or '(control)':<38} {verdict}"
    if not outcome.is_right:
        line += f"\n    said: {outcome.error or outcome.evidence}\n    remedy: {outcome.remedy}"
    return line + (f"\n    beside: {', '.join(outcome.beside)}" if outcome.beside and fault.check else "")


def summary(found: Outcomes, seconds: float) -> str:
    faults = [each for _, each in found if each.fault.check]
    controls = [each for _, each in found if not each.fault.check]
    right, silent = sum(each.is_right for each in faults), sum(each.is_right for each in controls)
    rate = f" ({right / len(faults):.1%})" if faults else ""
    told = f"{right} of {len(faults)} faults named with the right remedy{rate}; silent in {silent} of {len(controls)} controls"
    return f"{told}; {seconds:.0f} s"


def is_enough(found: Outcomes) -> bool:
    faults = [each.is_right for _, each in found if each.fault.check]
    return all(each.is_right for _, each in found if not each.fault.check) and sum(faults) >= RATE_MIN * len(faults)


def markdown(found: Outcomes) -> str:
    rows = ["| group | fault | check | named | remedy right |", "| --- | --- | --- | --- | --- |"]
    for group, each in found:
        fault = each.fault
        if fault.check:
            told = [f"`{fault.check}` {fault.level}", _yes(each.is_named), _yes(each.is_remedy_right)]
        else:
            told = ["none", "silent" if each.is_right else f"**alarm: {', '.join(each.beside)}**", ""]
        rows.append(" | ".join([f"| {group}", fault.name, *told]) + " |")
    return "\n".join(rows) + "\n"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "**no**"
