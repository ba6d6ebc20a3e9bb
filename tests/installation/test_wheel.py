"""The wheel: one import package, programs that run, and a source distribution that needs no compiler."""

import json
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.installation.conftest import Installation, run_in, wait_for
from tests.licences import ROOT
from tests.started_process import free_port
from tests.toolchain import run_tool

PUBLISH_AND_CONSUME = """
import sys, pulsar
client = pulsar.Client(sys.argv[1], logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
consumer = client.subscribe("greetings", "me")
client.create_producer("greetings").send(b"hello")
message = consumer.receive(timeout_millis=10_000)
consumer.acknowledge(message)
print(message.data().decode())
client.close()
"""


def test_the_wheel_adds_one_import_name(installed: Installation) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"interpulse"}
    assert not any((installed.site_packages() / name).exists() for name in ("cli", "broker", "metadata", "wire", "conf"))


def test_compilers_are_no_runtime_dependencies_and_the_licence_comes_along(installed: Installation) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        about = Parser().parsestr(wheel.read(name).decode())
        assert {Path(each).name for each in wheel.namelist() if "/licenses/" in each} - {"licenses"} == {"LICENSE", "NOTICE"}
    assert about["License-Expression"] == "Apache-2.0"
    wanted = [each.lower() for each in about.get_all("Requires-Dist") or []]
    assert not [each for each in wanted if each.startswith(("cython", "setuptools"))]
    assert len(wanted) == len(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])


def test_the_wheel_is_for_this_kind_of_linux_and_its_kernels_are_compiled(installed: Installation, folder: Path) -> None:
    told = json.loads(run_in(folder, installed.program("interpulse"), "version", "--json").stdout)
    has_kernels = any((ROOT / "wire" / "kernels").glob("*.so"))
    assert ("manylinux" in installed.wheel.name) == has_kernels
    assert told["kernels"].startswith("compiled" if has_kernels else "not compiled")
    assert told["commit"] == run_tool(["git", "rev-parse", "HEAD"], ROOT, 60)[:12]


def test_the_installed_standalone_serves_apaches_client_and_keeps_its_data_in_the_working_directory(
    installed: Installation, folder: Path
) -> None:
    sets = [word for key in ("brokerServicePort", "webServicePort") for word in ("--set", f"{key}={free_port()}")]
    command = [installed.program("interpulse"), "standalone", "--json-ready", str(folder / "ready"), *sets]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for((folder / "ready").exists)
            ready = json.loads((folder / "ready").read_text())
            answer = run_in(folder, str(installed.python), "-c", PUBLISH_AND_CONSUME, ready["brokerServiceUrl"])
            assert answer.stdout == "hello\n", answer.stderr
            admin = (installed.program("pulsar-admin"), "--admin-url", ready["webServiceUrl"])
            topics = run_in(folder, *admin, "topics", "list", "public/default")
            assert topics.stdout.strip() == "persistent://public/default/greetings", topics.stderr
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    assert ready["pid"] == server.pid, "the program becomes the server, so signals reach it"
    assert server.returncode == 0
    assert (folder / "data" / "standalone" / "metadata").exists()


def test_every_program_answers_under_both_of_its_names(installed: Installation, folder: Path) -> None:
    for name in ("pulsar-admin", "pulsar-client", "pulsar-perf", "bookkeeper"):
        twin = f"interpulse-{name.removeprefix('pulsar-')}"
        answers = [run_in(folder, installed.program(each), "--version") for each in (name, twin)]
        assert [each.returncode for each in answers] == [0, 0], answers
        assert answers[0].stdout == answers[1].stdout
        assert answers[0].stdout.startswith(f"{name} ")
    as_module = run_in(folder, str(installed.python), "-m", "interpulse", "version")
    assert as_module.stdout == run_in(folder, installed.program("interpulse"), "version").stdout


def test_the_source_distribution_installs_without_a_compiler_and_says_so(installed: Installation, tmp_path: Path) -> None:
    """With the build tools that are here, so that nothing is fetched."""
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    no_compiler = {"CC": "no-such-compiler", "INTERPULSE_KERNELS": ""}
    run_tool([*command, "--target", str(target), str(installed.source)], tmp_path, 300, no_compiler)
    told = run_tool([sys.executable, "-P", "-m", "interpulse", "version"], tmp_path, 60, {"PYTHONPATH": str(target)})
    assert "kernels: not compiled for this Python (slower" in told
    # the kernels import `cython`, which is not there: the installation brings what they ask it for
    kernel = "import cython, wire.kernels.entries as kernel; print(cython.compiled, cython.__file__, kernel.checksum(b'abc'))"
    product = target / "interpulse" / "product"
    answer = run_tool([sys.executable, "-P", "-c", kernel], tmp_path, 60, {"PYTHONPATH": str(product)})
    assert answer == f"False {product / 'cython.py'} {0x364B3FB7}\n"


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("gcc")), reason="no C compiler")
def test_the_source_distribution_compiles_the_kernels_where_there_is_a_compiler(
    installed: Installation, tmp_path: Path
) -> None:
    """One of them, which takes seconds: the types of the others are taken away."""
    with tarfile.open(installed.source) as source:
        source.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.glob("interpulse-*")
    for types in (tree / "wire" / "kernels").glob("*.pxd"):
        if types.stem not in ("octets", "sequences"):
            types.unlink()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    run_tool([*command, "--target", str(tmp_path / "installed"), str(tree)], tmp_path, 300, {"INTERPULSE_KERNELS": ""})
    built = list((tmp_path / "installed" / "interpulse" / "product" / "wire" / "kernels").glob("*.so"))
    assert [path.name.partition(".")[0] for path in built] == ["sequences"]


def test_the_source_distribution_has_what_the_compiler_needs(installed: Installation) -> None:
    with tarfile.open(installed.source) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    kernels = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "wire" / "kernels").iterdir()
        if path.suffix in (".py", ".pxd", ".h")
    }
    assert kernels - names == set()
    assert {"bin/compile-kernels", "LICENSE", "NOTICE", "commit.txt"} <= names
    assert not [name for name in names if name.startswith("tests") or name.endswith((".so", ".c"))]
