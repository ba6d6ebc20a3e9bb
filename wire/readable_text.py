"""Whether the text in a command is UTF-8, found in one pass of protobuf over its bytes. Pure.

Python's protobuf takes any bytes for the text of a proto2 message and tells them apart where each text is looked at: most of a
second for a command of megabytes. It checks the text of proto3 messages while it parses, so the contract is there once more as
proto3: fields keep their numbers, enums are numbers, nothing is required.
"""

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from wire.generated.pulsar_api_pb2 import DESCRIPTOR


def is_readable(encoded: bytes) -> bool:
    """Whether a BaseCommand, which protobuf could parse, has nothing but UTF-8 for its text."""
    try:
        _BaseCommand.FromString(encoded)
    except DecodeError:
        return False
    return True


def _as_proto3() -> FileDescriptorProto:
    file = FileDescriptorProto()
    DESCRIPTOR.CopyToProto(file)
    file.syntax = "proto3"
    file.ClearField("enum_type")
    for message in file.message_type:
        _change(message)
    return file


def _change(message: DescriptorProto) -> None:
    message.ClearField("enum_type")
    for field in message.field:
        if field.label != FieldDescriptorProto.LABEL_REPEATED:
            field.label = FieldDescriptorProto.LABEL_OPTIONAL
        if field.type == FieldDescriptorProto.TYPE_ENUM:
            field.type = FieldDescriptorProto.TYPE_INT32
            field.ClearField("type_name")
        field.ClearField("default_value")
    for inner in message.nested_type:
        _change(inner)


_POOL = DescriptorPool()
_POOL.AddSerializedFile(_as_proto3().SerializeToString())
_BaseCommand = GetMessageClass(_POOL.FindMessageTypeByName("interpulse.pulsar.BaseCommand"))
