"""Messages of the bookie protocol, written with struct rather than with the code that they test."""

import struct

KEY = bytes(range(20))


def entry(ledger_id: int, entry_id: int, payload: bytes = b"payload", lac: int = -1, length: int = 0) -> bytes:
    return struct.pack(">qqqq", ledger_id, entry_id, lac, length) + payload


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def add(ledger_id: int, entry_id: int, payload: bytes = b"payload", *, flags: int = 0, key: bytes = KEY) -> bytes:
    return frame(struct.pack(">I", 2 << 24 | 1 << 16 | flags) + key + entry(ledger_id, entry_id, payload, entry_id - 1))


def read(ledger_id: int, entry_id: int, *, flags: int = 0, key: bytes = b"") -> bytes:
    return frame(struct.pack(">Iqq", 2 << 24 | 2 << 16 | flags, ledger_id, entry_id) + key)


def batch_read(ledger_id: int, first: int, count: int, size: int, *, request_id: int = 77, flags: int = 0) -> bytes:
    return frame(struct.pack(">Iqqqiq", 2 << 24 | 7 << 16 | flags, ledger_id, first, request_id, count, size))


def answer(opcode: int, code: int, ledger_id: int, entry_id: int, body: bytes = b"") -> bytes:
    return frame(struct.pack(">Iiqq", 2 << 24 | opcode << 16, code, ledger_id, entry_id) + body)
