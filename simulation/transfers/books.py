"""The books of tokens that are moved in transactions, and whether they balance. Pure.

Each token is on one topic at first. In the end each is on both other topics, once, of one and the same transaction, and nothing
is left of those that were aborted.
"""

from collections.abc import Callable, Sequence

from simulation.checks.history import Violation

FROM = "persistent://public/default/wallet"
TO = ("persistent://public/default/debits", "persistent://public/default/credits")
SUBSCRIPTION = "movers"

Txn = tuple[int, int]


class Books:
    """Records of the answers that clients got. `moved_at`: virtual time at which one of them got a token last.

    `next_commit` is called once, when a client is about to ask for a commit.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = list(tokens)
        self.moved_at = 0.0
        self.next_commit: Callable[[], object] | None = None
        self._opened: dict[Txn, None] = {}
        self._committing: dict[Txn, None] = {}
        self._seen_early: dict[bytes, None] = {}
        self._committed: dict[Txn, bytes] = {}
        self._aborted: dict[Txn, bytes] = {}
        self._contradicted: dict[Txn, str] = {}

    def opened(self, txn: Txn) -> None:
        if txn in self._opened:
            raise Violation(f"transaction {txn} was given twice")
        self._opened[txn] = None

    def committing(self, txn: Txn) -> None:
        """Notes that the client is about to ask for the commit."""
        self._committing[txn] = None
        call, self.next_commit = self.next_commit, None
        if call is not None:
            call()

    def seen(self, body: bytes) -> None:
        """Notes a body seen by a reader while tokens are moved."""
        if _txn(body) not in self._committing:
            self._seen_early[body] = None

    def contradicted(self, txn: Txn, answer: str) -> None:
        """Notes an answer that some participants had ended it the other way, which no client here asks of them."""
        self._contradicted[txn] = answer

    def told(self, txn: Txn, token: bytes, *, is_committed: bool) -> None:
        (self._committed if is_committed else self._aborted)[txn] = token

    @property
    def counts(self) -> dict[str, int]:
        return {"opened": len(self._opened), "committed": len(self._committed), "aborted": len(self._aborted)}

    def check(self, debits: Sequence[bytes], others: Sequence[bytes], left: Sequence[bytes]) -> None:
        """Checks the reads of both topics, and the messages that the subscription still has. Violation."""
        self._check_noted()
        if left:
            raise Violation(f"tokens are still there: {left[:5]}")
        if sorted(debits) != sorted(others):
            raise Violation(f"the books do not balance: {sorted(set(debits) ^ set(others))[:5]}")
        moved: dict[bytes, Txn] = {}
        for body in debits:
            token, txn = body.rsplit(b" ", 2)[0], _txn(body)
            if token in moved:
                raise Violation(f"token {token!r} was moved by {moved[token]} and by {txn}")
            if txn in self._aborted:
                raise Violation(f"token {token!r} was moved by {txn}, which was aborted")
            moved[token] = txn
        for txn, token in self._committed.items():
            if moved.get(token) != txn:
                raise Violation(f"token {token!r} was moved by {txn}, its client was told; readers see {moved.get(token)}")
        missing = [token for token in self.tokens if token not in moved]
        if missing:
            raise Violation(f"tokens are lost: {missing[:5]}")

    def _check_noted(self) -> None:
        """Checks the notes that were made while tokens were moved."""
        if self._seen_early:
            raise Violation(f"read before anybody committed it: {list(self._seen_early)[:5]}")
        if self._contradicted:
            raise Violation(f"ended in two ways: {list(self._contradicted.items())[:2]}")


def _txn(body: bytes) -> Txn:
    """The transaction that a token on the other topics names."""
    _, most, least = body.rsplit(b" ", 2)
    return int(most), int(least)
