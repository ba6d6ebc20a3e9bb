"""A peer that is not known may authenticate and nothing else: each request is answered with EUA, or ends the connection."""

from collections.abc import Mapping
from typing import Any

import pytest

from bookie.server.security.guard import EUA, Guard, Refused, Verdict
from tests.bookie.runs import KEY, sealed
from wire.bookie.requests import Add, Answers, Authenticate, BatchRead, Force, Operation, Read, Request
from wire.bookie.version2 import Version2Answers
from wire.bookie.version3 import Version3Answers

VERSION2, VERSION3 = Version2Answers(2 << 24 | 1 << 16), Version3Answers(1, 7)


class Words:
    """An exchange of words: "hello" is answered, "password" lets in, all else is refused."""

    plugin = "words"

    def secured(self, certificate: Mapping[str, Any]) -> bool:
        if certificate.get("is_forged"):
            raise Refused("forged")
        return bool(certificate)

    def heard(self, payload: bytes) -> tuple[bytes, bool]:
        if payload not in (b"hello", b"password"):
            raise Refused("a wrong word")
        return b"heard " + payload, payload == b"password"


def judge(guard: Guard, operation: Operation, answers: Answers) -> Verdict:
    return guard.judge(Request(operation, answers))


def test_a_peer_is_let_in_by_the_message_that_proves_enough() -> None:
    guard = Guard(Words())
    assert judge(guard, Authenticate("words", b"hello"), VERSION3) == Verdict(VERSION3.authenticated("words", b"heard hello"))
    assert not guard.is_satisfied
    judge(guard, Authenticate("words", b"password"), VERSION3)
    assert guard.is_satisfied


@pytest.mark.parametrize("answers", [VERSION2, VERSION3], ids=["version 2", "version 3"])
def test_a_wrong_proof_ends_the_connection_with_the_reason_for_the_log(answers: Answers) -> None:
    guard = Guard(Words())
    verdict = judge(guard, Authenticate("words", b"guess"), answers)
    assert verdict.end == "authentication failed: a wrong word"
    assert verdict.answer == (VERSION3.failed(EUA) if answers is VERSION3 else b"")
    assert not guard.is_satisfied


def test_another_way_to_authenticate_is_refused_and_version_3_may_try_again() -> None:
    guard, other = Guard(Words()), Authenticate("kerberos", b"password")
    assert judge(guard, other, VERSION3) == Verdict(VERSION3.failed(EUA))
    assert "'kerberos'" in judge(guard, other, VERSION2).end
    assert not guard.is_satisfied


def test_adds_and_reads_are_answered_with_eua_in_the_form_of_their_version() -> None:
    guard, add, read = Guard(Words()), Add(sealed(5, 3), KEY, False), Read(5, 4, KEY)
    assert judge(guard, add, VERSION2) == Verdict(VERSION2.added(EUA, 5, 3))
    assert judge(guard, read, VERSION2) == Verdict(VERSION2.read(EUA, 5, 4))
    for operation in (add, read, Force(5), BatchRead(5, 0, 1, 1, 1)):
        assert judge(guard, operation, VERSION3) == Verdict(VERSION3.failed(EUA))


def test_a_request_that_version_2_cannot_refuse_ends_the_connection() -> None:
    verdict = judge(Guard(Words()), BatchRead(5, 0, 1, 1, 1), VERSION2)
    assert verdict == Verdict(end="BatchRead before the peer was authenticated")


def test_a_certificate_lets_in_keeps_out_or_leaves_it_to_messages() -> None:
    guard = Guard(Words())
    assert guard.secured({"is_forged": True}) == "forged"
    assert not guard.is_satisfied
    assert (guard.secured({}), guard.is_satisfied) == ("", False)
    assert (guard.secured({"subject": ()}), guard.is_satisfied) == ("", True)
