"""wire.bookie.digests: BookKeeper's four digests. The golden entries come from its DigestManager (bookkeeper 4.17.2)."""

from array import array

import pytest

from wire.bookie.digests import HEADER_BYTES, DigestType, first_damaged, lac_in_record, lac_record, seal
from wire.run import EntryBatch, EntryRun

PREFIX = "00000000000000050000000000000007000000000000000600000000000003ef"
GOLDEN = {
    DigestType.CRC32: "00000000de160b50",
    DigestType.HMAC: "dcb84d164427d3720fb093a8eb7e6e24a465009a",
    DigestType.CRC32C: "0bb41206",
    DigestType.DUMMY: "",
}


def batch(digest: DigestType, *payloads: bytes) -> EntryBatch:
    offsets = array("I", [0])
    for payload in payloads:
        offsets.append(offsets[-1] + HEADER_BYTES[digest] + len(payload))
    buffer = bytearray(b"".join(bytes(HEADER_BYTES[digest]) + payload for payload in payloads))
    return EntryBatch(buffer, offsets, HEADER_BYTES[digest], len(payloads))


def run_of(sealed: EntryBatch, ledger_id: int = 5, first_entry_id: int = 7) -> EntryRun:
    return EntryRun(ledger_id, first_entry_id, sealed.buffer, sealed.offsets, sealed.header_bytes)


@pytest.mark.parametrize("digest", DigestType)
def test_a_sealed_entry_is_bookkeepers(digest: DigestType) -> None:
    made = batch(digest, b"payload")
    assert seal(made, 5, 7, 6, 1000, digest, b"secret") == 1007
    assert made.buffer.hex() == PREFIX + GOLDEN[digest] + b"payload".hex()
    assert first_damaged(run_of(made), digest, b"secret") == -1


@pytest.mark.parametrize("digest", [DigestType.CRC32, DigestType.HMAC, DigestType.CRC32C])
def test_a_flipped_bit_is_damage(digest: DigestType) -> None:
    made = batch(digest, b"one", b"two")
    seal(made, 5, 7, -1, 0, digest, b"secret")
    for bit in range(len(made.buffer) * 8):
        made.buffer[bit // 8] ^= 1 << bit % 8
        assert first_damaged(run_of(made), digest, b"secret") == int(bit // 8 >= made.offsets[1])
        made.buffer[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("digest", DigestType)
def test_an_entry_of_another_place_or_cut_off_is_damage(digest: DigestType) -> None:
    made = batch(digest, b"one", b"two")
    seal(made, 5, 7, -1, 0, digest)
    assert first_damaged(run_of(made, ledger_id=6), digest) == 0
    assert first_damaged(run_of(made, first_entry_id=8), digest) == 0
    cut = EntryRun(5, 7, bytes(made.buffer[:-1]), made.offsets, made.header_bytes)
    assert first_damaged(cut, digest) == 1


def test_another_password_is_damage() -> None:
    made = batch(DigestType.HMAC, b"one")
    seal(made, 5, 7, -1, 0, DigestType.HMAC, b"secret")
    assert first_damaged(run_of(made), DigestType.HMAC, b"other") == 0


def test_the_room_must_fit_the_digest() -> None:
    with pytest.raises(ValueError, match="HMAC needs 52"):
        seal(batch(DigestType.CRC32, b"x"), 1, 1, 0, 0, DigestType.HMAC)


LAC_RECORDS = {
    DigestType.CRC32C: "00000000000000070000000000000002642b2407",
    DigestType.CRC32: "000000000000000700000000000000020000000066d447b0",
    DigestType.HMAC: "00000000000000070000000000000002970874a669189389779c514503b65bd4a751a021",
    DigestType.DUMMY: "00000000000000070000000000000002",
}
"""Records of bookkeeper 4.17.3, with the password "pw"."""


@pytest.mark.parametrize("digest", DigestType)
def test_an_explicit_last_add_confirmed_is_bookkeepers_and_any_other_is_refused(digest: DigestType) -> None:
    record = lac_record(7, 2, digest, b"pw")
    assert record.hex() == LAC_RECORDS[digest]
    assert lac_in_record(record, 7, digest, b"pw") == 2
    assert lac_in_record(lac_record(7, -1, digest, b"pw"), 7, digest, b"pw") == -1
    assert lac_in_record(record, 8, digest, b"pw") is None
    assert lac_in_record(record[:-1], 7, digest, b"pw") is None
    if digest is not DigestType.DUMMY:
        assert lac_in_record(record[:15] + b"\x03" + record[16:], 7, digest, b"pw") is None
