"""Message ids and positions as the command line and the REST have them. Pure."""

from typing import Any

from cli.admin.arguments import WrongUsage

LATEST = (1 << 63) - 1


def position(text: str) -> tuple[int, int]:
    """Ledger and entry of "ledger:entry", earliest or latest. WrongUsage."""
    if text == "earliest":
        return -1, -1
    if text == "latest":
        return LATEST, LATEST
    try:
        ledger, entry = text.split(":")[:2]
        return int(ledger), int(entry)
    except ValueError:
        raise WrongUsage(f"Invalid message id '{text}'; expected earliest, latest or <ledgerId>:<entryId>") from None


def message_id(text: str) -> dict[str, Any]:
    ledger, entry = position(text)
    return {"ledgerId": ledger, "entryId": entry, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0}


def reset_to(text: str, excluded: bool) -> dict[str, Any]:
    """ResetCursorData of Apache."""
    ledger, entry = position(text)
    return {"ledgerId": ledger, "entryId": entry, "partitionIndex": -1, "batchIndex": -1, "excluded": excluded}
