"""A frame's schema against the columns that there are; batches as the frame has them."""

import pyarrow
import pytest
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, MapType, StringType, StructType

from pipeline.pyspark_pulsar.decode.arrow_columns import MESSAGE_ID
from pipeline.pyspark_pulsar.errors import WrongOption
from pipeline.pyspark_pulsar.frames.split_batches import as_frame
from pipeline.pyspark_pulsar.spark.columns import frame_of

_ENTRY = StructType().add("ledger_id", LongType()).add("entry_id", LongType())
_PLACE = StructType([*_ENTRY.fields]).add("batch_index", IntegerType())


@pytest.mark.parametrize(
    ("name", "type_", "reason"),
    [
        ("keys", BinaryType(), "column keys is not there"),
        ("key", StringType(), "column key is binary, not string"),
        ("topic", StringType(), "topic: there twice"),
        ("message_id", _ENTRY, "column message_id is struct<.*batch_index:int>, not struct<"),
        ("properties", MapType(StringType(), StringType(), False), "properties: a member is said not to be null that may be"),
    ],
)
def test_a_column_that_is_not_ours_is_refused(name: str, type_: DataType, reason: str) -> None:
    with pytest.raises(WrongOption, match=reason):
        frame_of(StructType().add("topic", StringType()).add(name, type_), None)


def test_a_never_null_column_is_declared_nullable_without_a_copy() -> None:
    frame = frame_of(StructType().add("message_id", _PLACE), None)
    batch = pyarrow.RecordBatch.from_arrays([pyarrow.array([(7, 1, -1), (7, 2, 0)], MESSAGE_ID)], names=["message_id"])
    found = as_frame(batch, frame)
    assert found.schema.equals(frame)
    assert not batch.schema.equals(frame)
    assert found.to_pylist() == batch.to_pylist()
    assert found.column(0).field(0).buffers()[1].address == batch.column(0).field(0).buffers()[1].address


def test_a_batch_without_columns_keeps_its_rows() -> None:
    empty = pyarrow.RecordBatch.from_struct_array(pyarrow.array([None] * 3, pyarrow.struct([])))
    assert as_frame(empty, frame_of(StructType(), None)).num_rows == 3
