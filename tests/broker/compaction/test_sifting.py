"""The two phases, against a naive twin: which messages stay, where they are, and what is not looked into."""

import importlib.util
import sys
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.compaction.keys import KeyTable
from broker.compaction.sifting import Kept, Newest, Portion
from tests.broker.compaction.messages import Seen, Single, batched, compacted_by_hand, run_of, seen_in, single
from tests.wire.both_kernels import KERNELS
from wire.generated.pulsar_api_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD
from wire.kernels.compacted_entries import unpack
from wire.position import Position
from wire.run import EntryRun

COMPRESSIONS = (NONE, LZ4, ZLIB, ZSTD, SNAPPY)
_KEYS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "c", "ä-very-long-key"]))
_SINGLES: st.SearchStrategy[Single] = st.tuples(_KEYS, st.sampled_from([b"", b"x", b"body" * 9]))
_SECTIONS = st.one_of(
    _SINGLES.map(lambda one: single(*one)),
    st.builds(batched, st.lists(_SINGLES, min_size=1, max_size=5), st.sampled_from(COMPRESSIONS)),
    st.just(single("a", b"marker", marker_type=20)),
)


def compacted(runs: Sequence[EntryRun], *, retains_null_key: bool = False) -> list[EntryRun]:
    """Both phases; what stays, as runs of the ledgers that it is of."""
    newest = Newest(KeyTable(), retains_null_key)
    for run in runs:
        newest.note(Portion.whole(run))
    kept, found = Kept(newest, -1, 36), []
    for run in runs:
        batch = kept.of(Portion.whole(run))
        stored, at = EntryRun(99, 0, batch.buffer, batch.offsets, 36), 0
        while at < stored.count:
            back, _, at = unpack(stored, at, 1000)
            found.append(back)
    return found


def messages_of(runs: Sequence[EntryRun]) -> list[Seen]:
    return [
        each
        for run in runs
        for entry_id in range(run.first_entry_id, run.last_entry_id + 1)
        if run.payload(entry_id)
        for each in seen_in(Position(run.ledger_id, entry_id), run.payload(entry_id))
    ]


@given(st.lists(st.lists(_SECTIONS, min_size=1, max_size=6), max_size=5), st.booleans())
@settings(max_examples=150)
def test_the_newest_message_of_each_key_stays_where_it_was(ledgers: list[list[bytes]], retains_null_key: bool) -> None:
    runs = [run_of(7 + number, 3 * number, sections) for number, sections in enumerate(ledgers)]
    entries = {
        Position(run.ledger_id, run.first_entry_id + index): section
        for run, sections in zip(runs, ledgers, strict=True)
        for index, section in enumerate(sections)
    }
    once = compacted(runs, retains_null_key=retains_null_key)
    assert messages_of(once) == compacted_by_hand(entries, retains_null_key=retains_null_key)
    again = compacted(once, retains_null_key=retains_null_key)
    assert messages_of(again) == messages_of(once), "what is compacted is not changed by being compacted"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_batch_of_which_one_message_stays_keeps_the_places_of_all(compression: int) -> None:
    run = run_of(5, 0, [batched([("a", b"1"), ("b", b"2"), ("a", b"3")], compression), single("b", b"4")])
    assert messages_of(compacted([run])) == [
        Seen(Position(5, 0), 2, "a", b"3"),
        Seen(Position(5, 1), -1, "b", b"4"),
    ]


def test_a_batch_that_is_encrypted_stays_as_it_is_and_says_nothing_of_keys() -> None:
    section = batched([("a", b"1")], partition_key="a", encryption_algo="x")
    run = run_of(5, 0, [single("a", b"0"), _encrypted(section), single("a", b"")])
    [kept] = compacted([run])
    assert (kept.first_entry_id, bytes(kept.payload(1))) == (1, _encrypted(section))


def _encrypted(section: bytes) -> bytes:
    from wire.payloads import message_metadata, payload_section, split_section

    parts = split_section(section)
    metadata = message_metadata(parts)
    metadata.encryption_keys.add(key="k", value=b"v")
    return payload_section(metadata, parts.payload)


def test_a_batch_that_cannot_be_read_stays_as_it_is() -> None:
    torn = single(None, b"no batch", num_messages_in_batch=3)
    wrong = single(None, b"no lz4", num_messages_in_batch=3, compression=LZ4, uncompressed_size=100)
    runs = compacted([run_of(5, 0, [torn, wrong, b"\0\0\0\4oops"])])
    assert [bytes(run.payload(run.first_entry_id + index)) for run in runs for index in range(run.count)] == [
        torn,
        wrong,
        b"\0\0\0\4oops",
    ]


def _chunks(key: str | None, uuid: str, count: int) -> list[bytes]:
    return [single(key, b"part", uuid=uuid, num_chunks_from_msg=count, chunk_id=index) for index in range(count)]


def test_all_chunks_of_a_message_stay_or_go_together() -> None:
    first, second, begun = _chunks("a", "u1", 2), _chunks("a", "u2", 3), _chunks("b", "u3", 4)[:2]
    runs = compacted([run_of(5, 0, [*first, single("b", b"old"), *second, *begun])])
    assert [each.position.entry_id for each in messages_of(runs)] == [2, 3, 4, 5, 6, 7]
    gone = compacted([run_of(5, 0, [*first, single("a", b"")])])
    assert messages_of(gone) == [], "a message without a body removes one in chunks too"


def test_entries_that_are_skipped_are_as_if_they_were_not_there() -> None:
    run = run_of(5, 0, [single("a", b"1"), single("a", b"2")])
    newest = Newest(KeyTable(), False)
    portion = Portion(run, b"\0\1")
    newest.note(portion)
    batch = Kept(newest, -1, 36).of(portion)
    back, ids, _ = unpack(EntryRun(99, 0, batch.buffer, batch.offsets, 36), 0, 10)
    assert (list(ids), bytes(back.payload(0))) == ([0], single("a", b"1"))


def test_the_broker_entry_metadata_of_a_rewritten_batch_stays() -> None:
    stamp = b"\x0e\x02\0\0\0\x02\x10\x07"
    run = run_of(5, 0, [stamp + batched([("a", b"1"), ("b", b"2")], ZSTD), single("a", b"")])
    [kept] = compacted([run])
    assert bytes(kept.payload(0)[:8]) == stamp
    assert messages_of([kept]) == [Seen(Position(5, 0), 1, "b", b"2")]


@given(st.lists(st.tuples(st.integers(0, 3000), st.booleans()), max_size=6000))
@settings(max_examples=15)
def test_a_key_table_is_a_dictionary(steps: list[tuple[int, bool]]) -> None:
    table, twin = KeyTable(), dict[bytes, int]()
    for mark, (number, is_removed) in enumerate(steps, 1):
        key = b"%d" % number
        table.note(key, 0 if is_removed else mark)
        twin.pop(key, None) if is_removed else twin.update({key: mark})
    assert table.keys == len(twin)
    assert all(table.newest(b"%d" % number) == twin.get(b"%d" % number, -1) for number in range(3001))


def test_a_key_takes_at_most_45_bytes_once_there_are_many() -> None:
    table = KeyTable()
    for number in range(100_000):
        table.note(b"key-%d" % number, number + 1)
    assert table.keys == 100_000
    assert table.size_bytes <= 45 * 100_000


@pytest.fixture
def plain_kernels() -> Iterator[dict[str, object]]:
    """The three kernels from their sources, which import one another."""
    names = [f"wire.kernels.{name}" for name in ("key_table", "compaction", "compacted_entries")]
    installed = {name: sys.modules.get(name) for name in names}
    found: dict[str, object] = {}
    try:
        for name in names:
            spec = importlib.util.spec_from_file_location(name, KERNELS / f"{name.rpartition('.')[2]}.py")
            assert spec is not None
            assert spec.loader is not None
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
            found[name] = sys.modules[name]
        yield found
    finally:
        for name, module in installed.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def test_the_kernels_are_the_same_compiled_and_plain(plain_kernels: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    sections = [batched([("a", b"1"), ("b", b"2"), (None, b"3")], compression) for compression in COMPRESSIONS] + [
        single("a", b"4"),
        single("c", b"5"),
        single("b", b""),
        single(None, b"6"),
        single("", b"7"),
    ]
    runs = [run_of(1 << 40, 5, sections[:5]), run_of(1 << 50, 1 << 20, sections[5:])]
    compiled = [bytes(run.buffer) for run in compacted(runs)]
    for name in ("note_run", "note_batch", "choose", "rebatch", "pack", "messages_in"):
        source = "compacted_entries" if name == "pack" else "compaction"
        monkeypatch.setattr(f"broker.compaction.sifting.{name}", getattr(plain_kernels[f"wire.kernels.{source}"], name))
    for name in ("newest", "note_key", "rehash"):
        monkeypatch.setattr(f"broker.compaction.keys.{name}", getattr(plain_kernels["wire.kernels.key_table"], name))
    assert [bytes(run.buffer) for run in compacted(runs)] == compiled
    assert compiled, "something stayed"


def test_a_message_that_is_its_only_chunk_is_one_in_one_piece() -> None:
    run = run_of(5, 0, [*_chunks("a", "u1", 1), single("a", b"2")])
    assert messages_of(compacted([run])) == [Seen(Position(5, 1), -1, "a", b"2")]


def test_a_batch_that_says_it_is_the_only_chunk_is_taken_apart() -> None:
    section = batched([("a", b"1"), ("b", b"2")], uuid="u", num_chunks_from_msg=1, chunk_id=0)
    run = run_of(5, 0, [section, single("a", b"3")])
    assert messages_of(compacted([run])) == [Seen(Position(5, 0), 1, "b", b"2"), Seen(Position(5, 1), -1, "a", b"3")]


def test_a_key_table_grows_by_half_when_four_fifths_are_in_use_and_by_more_where_more_is_wanted() -> None:
    table = KeyTable()
    for number in range(819):
        table.note(b"%d" % number, 1)
    assert table.size_bytes == 24 * 1024
    table.note(b"819", 1)
    assert table.size_bytes == 24 * 1536
    table.reserve(10_000)
    assert table.size_bytes == 24 * (5 * 10_820 // 4 + 1)
