"""The machine of deduplication: pushed and persisted apart, beside a naive twin; chunks, batches, snapshots, names."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from broker.topic.publish.deduplication import NOTHING, SLACK, Chunk, Deduplication, Verdict

STORE, REPEATED, UNKNOWN, STRADDLES = Verdict.STORE, Verdict.REPEATED, Verdict.UNKNOWN, Verdict.STRADDLES
WHOLE = ("p-5", 3, 3000)
"""A message of three chunks."""


def machine(producers_max: int = 10) -> Deduplication:
    return Deduplication(producers_max)


def stored(known: Deduplication, name: str, *ids: int) -> None:
    """Messages that are pushed and persisted one by one."""
    for each in ids:
        assert known.push_run(name, each, each, 0)
        known.stored(name, each, None, 1)


def judge(known: Deduplication, first: int, last: int | None = None, chunk: Chunk | None = None, name: str = "p") -> Verdict:
    verdict = known.judge(name, first, first if last is None else last, chunk, 0)
    if verdict is STORE:
        known.begin_append(name)
    return verdict


def test_a_persisted_message_is_a_repeat_and_one_that_is_only_pushed_is_unknown() -> None:
    known = machine()
    stored(known, "p", 0, 1)
    assert known.push_run("p", 2, 4, 0)
    assert [judge(known, each) for each in (0, 1, 2, 4)] == [REPEATED, REPEATED, UNKNOWN, UNKNOWN]
    assert known.last_pushed("p") == 4
    known.stored("p", 4, None, 3)
    assert [judge(known, each) for each in (2, 4)] == [REPEATED, REPEATED]
    known.check_invariants()


def test_each_name_has_ids_of_its_own() -> None:
    known = machine()
    stored(known, "p", 7)
    assert judge(known, 7, name="q") is STORE
    assert (known.last_pushed("p"), known.last_pushed("q"), known.last_pushed("r")) == (7, 7, NOTHING)


def test_f25_after_a_failed_append_the_retry_is_stored() -> None:
    """F25: the sequence id was noted as pushed, the write failed; the retry is neither a repeat nor unknown."""
    known = machine()
    stored(known, "p", 0)
    assert known.push_run("p", 1, 1, 0)
    assert known.push_run("p", 2, 2, 0)
    known.failed("p")
    assert judge(known, 1) is UNKNOWN  # 2 is still on its way
    known.failed("p")
    assert known.last_pushed("p") == 0
    assert [judge(known, each) for each in (0, 1, 2)] == [REPEATED, STORE, STORE]


def test_a_batch_of_which_a_part_is_stored_is_refused_and_nothing_above_it_is_taken_before_it_is_mended() -> None:
    known = machine()
    stored(known, "p", 10)
    assert judge(known, 8, 10) is REPEATED
    assert judge(known, 8, 12) is STRADDLES
    assert judge(known, 13, 15) is UNKNOWN  # stored, it would make a repeat of 11 and 12, which are nowhere
    assert not known.push_run("p", 13, 15, 0)
    assert judge(known, 8, 12) is STRADDLES
    known.came("p")
    assert judge(known, 11, 12) is STORE
    assert judge(known, 13, 15) is STORE


def test_nothing_above_a_refused_message_is_taken_until_it_comes_again() -> None:
    known = machine()
    stored(known, "p", 0)
    known.refused("p", 1, 0)
    assert not known.push_run("p", 2, 2, 0)
    assert judge(known, 2) is UNKNOWN
    assert judge(known, 1) is STORE
    assert known.push_run("p", 2, 2, 0)


def test_chunks_share_a_sequence_id_that_counts_with_the_last_of_them() -> None:
    known = machine()
    stored(known, "p", 4)
    chunks = [Chunk(WHOLE, index) for index in range(3)]
    assert [judge(known, 5, chunk=chunk) for chunk in chunks] == [STORE, STORE, STORE]
    assert [judge(known, 5, chunk=chunk) for chunk in chunks] == [UNKNOWN, UNKNOWN, UNKNOWN]
    known.stored("p", NOTHING, chunks[0], 1)
    known.stored("p", NOTHING, chunks[1], 1)
    assert known.snapshot() == {"p": 4}
    known.stored("p", 5, chunks[2], 1)
    assert [judge(known, 5, chunk=chunk) for chunk in chunks] == [REPEATED, REPEATED, REPEATED]
    assert known.snapshot() == {"p": 5}
    known.check_invariants()


def test_f23_chunks_that_are_sent_again_are_stored_once() -> None:
    """F23: the connection broke after two of three chunks, and the client sends all of them again."""
    known = machine()
    chunks = [Chunk(WHOLE, index) for index in range(3)]
    for chunk in chunks[:2]:
        assert judge(known, 5, chunk=chunk) is STORE
        known.stored("p", NOTHING, chunk, 1)
    assert [judge(known, 5, chunk=chunk) for chunk in chunks] == [REPEATED, REPEATED, STORE]


def test_f23_chunks_with_another_uuid_are_stored_from_the_first_on() -> None:
    """F23: the producer cuts the message anew, so that the chunks before belong to nothing: all are stored."""
    known = machine()
    assert judge(known, 5, chunk=Chunk(WHOLE, 0)) is STORE
    known.stored("p", NOTHING, Chunk(WHOLE, 0), 1)
    other = ("p-5-again", 2, 3000)
    assert [judge(known, 5, chunk=Chunk(other, index)) for index in range(2)] == [STORE, STORE]


def test_the_last_chunk_stored_forgets_only_its_own_message() -> None:
    known = machine()
    next_message = ("p-6", 2, 2000)
    assert [judge(known, 5, chunk=Chunk(WHOLE, index)) for index in range(3)] == [STORE] * 3
    assert judge(known, 6, chunk=Chunk(next_message, 0)) is STORE
    for index in range(3):
        known.stored("p", 5 if index == 2 else NOTHING, Chunk(WHOLE, index), 1)
    assert judge(known, 6, chunk=Chunk(next_message, 0)) is UNKNOWN
    known.stored("p", NOTHING, Chunk(next_message, 0), 1)
    assert judge(known, 6, chunk=Chunk(next_message, 0)) is REPEATED


def test_a_replay_and_a_snapshot_give_back_what_was_known() -> None:
    known = machine()
    stored(known, "p", 0, 3)
    again = machine()
    again.restore(known.snapshot(), 0)
    again.replayed("p", 4, None, 0)
    again.replayed("q", NOTHING, Chunk(WHOLE, 0), 0)
    again.replayed("q", NOTHING, Chunk(WHOLE, 1), 0)
    assert again.unsaved_entries == 3
    assert [judge(again, each) for each in (3, 4, 5)] == [REPEATED, REPEATED, STORE]
    assert [judge(again, 5, chunk=Chunk(WHOLE, index), name="q") for index in range(3)] == [REPEATED, REPEATED, STORE]


def test_a_snapshot_says_nothing_of_what_is_only_pushed() -> None:
    known = machine()
    stored(known, "p", 0)
    assert known.push_run("p", 1, 1, 0)
    assert known.push_run("q", 1, 1, 0)
    assert known.snapshot() == {"p": 0}
    assert known.unsaved_entries == 0


def test_messages_noted_before_a_restore_count_without_being_judged() -> None:
    known = machine()
    known.note("p", 4, 0)
    known.note("p", NOTHING, 0)
    known.restore({"p": 2}, 0)
    assert judge(known, 3) is UNKNOWN
    known.stored("p", 4, None, 1)
    known.stored("p", NOTHING, None, 1)
    assert judge(known, 3) is REPEATED
    known.check_invariants()


def test_names_go_that_nobody_has_used_for_long_and_those_in_use_stay() -> None:
    known = machine()
    for name in ("idle", "used", "busy"):
        stored(known, name, 1)
    assert known.push_run("busy", 2, 2, 0)
    assert known.purge({"used"}, before_ms=100, now_ms=200) == 1
    assert [judge(known, 1, name=name) for name in ("used", "busy", "idle")] == [REPEATED, REPEATED, STORE]


def test_the_oldest_of_too_many_names_go_and_a_snapshot_has_the_youngest() -> None:
    known = machine(producers_max=2)
    for place in range(4):
        assert known.push_run(f"p{place}", 0, 0, place)
        known.stored(f"p{place}", 0, None, 1)
    assert sorted(known.snapshot()) == ["p2", "p3"]
    assert known.purge((), before_ms=0, now_ms=9) == 2
    assert sorted(known.snapshot()) == ["p2", "p3"]
    assert not known.has_too_many
    for place in range(SLACK + 1):
        known.touch(f"n{place}", 9)
    assert known.has_too_many


@dataclass
class Naive:
    """Every id that was ever stored, and every id on its way."""

    stored: set[int] = field(default_factory=set)
    on_their_way: list[tuple[int, int]] = field(default_factory=list)


@given(st.lists(st.tuples(st.sampled_from(("send", "stored", "failed")), st.integers(0, 12), st.integers(0, 3)), max_size=60))
def test_each_id_is_stored_once_and_never_called_stored_when_it_is_not(steps: list[tuple[str, int, int]]) -> None:
    """One producer, whose ids may go back and whose log answers in order."""
    known, naive = machine(), Naive()
    for what, first, more in steps:
        last = first + more
        if what == "send":
            verdict = STORE if known.push_run("p", first, last, 0) else judge(known, first, last)
            if verdict is STORE:
                assert not naive.stored & set(range(first, last + 1))
                naive.on_their_way.append((first, last))
            if verdict is REPEATED:
                assert naive.stored
                assert last <= max(naive.stored)
        elif naive.on_their_way:
            begin, end = naive.on_their_way.pop(0)
            if what == "stored":
                naive.stored |= set(range(begin, end + 1))
                known.stored("p", end, None, 1)
            else:  # as a log does: all that comes after fails too
                known.failed("p")
                for _ in naive.on_their_way:
                    known.failed("p")
                naive.on_their_way.clear()
        known.check_invariants()


def test_a_chunk_that_is_stored_takes_back_nothing_of_those_that_are_on_their_way() -> None:
    known = machine()
    chunks = [Chunk(("p-5", 4, 4000), index) for index in range(3)]
    assert [judge(known, 5, chunk=chunk) for chunk in chunks] == [STORE] * 3
    known.stored("p", NOTHING, chunks[0], 1)
    assert [judge(known, 5, chunk=chunk) for chunk in chunks] == [REPEATED, UNKNOWN, UNKNOWN]


def test_the_oldest_of_several_refused_messages_has_to_come_first() -> None:
    known = machine()
    known.refused("p", 5, 0)
    known.refused("p", 3, 0)
    assert judge(known, 4) is UNKNOWN
    assert judge(known, 3) is STORE
