from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TransactionIds(_message.Message):
    __slots__ = ("most_bits", "least_bits")
    MOST_BITS_FIELD_NUMBER: _ClassVar[int]
    LEAST_BITS_FIELD_NUMBER: _ClassVar[int]
    most_bits: int
    least_bits: bytes
    def __init__(self, most_bits: _Optional[int] = ..., least_bits: _Optional[bytes] = ...) -> None: ...

class AbortedSegment(_message.Message):
    __slots__ = ("ledger_id", "aborted")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    ABORTED_FIELD_NUMBER: _ClassVar[int]
    ledger_id: int
    aborted: _containers.RepeatedCompositeFieldContainer[TransactionIds]
    def __init__(self, ledger_id: _Optional[int] = ..., aborted: _Optional[_Iterable[_Union[TransactionIds, _Mapping]]] = ...) -> None: ...

class SegmentPlace(_message.Message):
    __slots__ = ("segment_id", "ledger_id", "entry_id")
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    segment_id: int
    ledger_id: int
    entry_id: int
    def __init__(self, segment_id: _Optional[int] = ..., ledger_id: _Optional[int] = ..., entry_id: _Optional[int] = ...) -> None: ...

class SnapshotIndex(_message.Message):
    __slots__ = ("replay_ledger_id", "replay_entry_id", "segments")
    REPLAY_LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLAY_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    replay_ledger_id: int
    replay_entry_id: int
    segments: _containers.RepeatedCompositeFieldContainer[SegmentPlace]
    def __init__(self, replay_ledger_id: _Optional[int] = ..., replay_entry_id: _Optional[int] = ..., segments: _Optional[_Iterable[_Union[SegmentPlace, _Mapping]]] = ...) -> None: ...

class SnapshotEntry(_message.Message):
    __slots__ = ("version", "segment", "index")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    version: int
    segment: AbortedSegment
    index: SnapshotIndex
    def __init__(self, version: _Optional[int] = ..., segment: _Optional[_Union[AbortedSegment, _Mapping]] = ..., index: _Optional[_Union[SnapshotIndex, _Mapping]] = ...) -> None: ...
