"""The code in wire/generated is the code that bin/generate-proto makes of proto/."""

import pathlib
import subprocess
import sys

from wire.generated import ledger_metadata_pb2, managed_ledger_pb2, pulsar_api_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = (pulsar_api_pb2, managed_ledger_pb2, ledger_metadata_pb2)


def test_generated_code_is_current(tmp_path: pathlib.Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "bin" / "generate-proto"), str(tmp_path)], check=True, cwd=ROOT)
    fresh = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = {path.name: path.read_bytes() for path in (ROOT / "wire" / "generated").glob("*_pb2.py*")}
    assert fresh == committed


def test_packages_are_our_own_so_that_another_pulsar_library_can_live_in_the_same_process() -> None:
    assert {module.DESCRIPTOR.package for module in PACKAGES} == {
        "interpulse.pulsar",
        "interpulse.managed_ledger",
        "interpulse.bookkeeper",
    }


def test_a_command_is_in_the_field_whose_number_is_its_type() -> None:
    numbers = {field.number: field.name for field in pulsar_api_pb2.BaseCommand.DESCRIPTOR.fields if field.number > 1}
    assert sorted(numbers) == sorted(pulsar_api_pb2.BaseCommand.Type.values())
    assert len(numbers) == 58


def test_required_fields_are_written_even_when_they_are_zero() -> None:
    for field in pulsar_api_pb2.BaseCommand.DESCRIPTOR.fields:
        inner = field.message_type
        for required in inner.fields if inner else ():
            if required.is_required and required.cpp_type == required.CPPTYPE_UINT64:
                command = pulsar_api_pb2.BaseCommand()
                setattr(getattr(command, field.name), required.name, 0)
                assert bytes([required.number << 3, 0]) in command.SerializePartialToString()
