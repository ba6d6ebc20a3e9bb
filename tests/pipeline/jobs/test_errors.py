"""Jobs that fail say why and for which topic, leave nothing half done, and go on when they are run again."""

import json
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.pyspark_pulsar.jobs import command_line
from pipeline.pyspark_pulsar.jobs.command_line import main
from pipeline.pyspark_pulsar.jobs.on_spark import land as land_job
from tests.bookie.disk_proofs.mounts import LoopMount, need_loop_mounts
from tests.clients.python_client import published, until
from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.conftest import SETTINGS
from tests.pipeline.job_process import JobProcess, run_job, urls
from tests.pipeline.scripted_broker import ScriptedBroker
from tests.pipeline.scripted_server import ScriptedServer
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import made, put, stats, values

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a query takes minutes
JOBS = "tests.pipeline.sink_jobs"


def land(server: Ready, topic: str, to: Path, *more: str) -> list[str]:
    return ["land", *urls(server), "--topics", topic, "--to", str(to), *more]


def landed(spark: SparkProcess, to: Path) -> list[str]:
    return [each["value"].decode() for each in spark.run("tests.pipeline.spark_jobs:table", path=str(to / "data"))]


@pytest.mark.parametrize("job", ["replay", "dead-letters"])
def test_a_wrong_token_is_told_with_the_topic(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--to", "copy", "--name", "x"] if job == "replay" else []
    with ScriptedBroker({}, token="right") as broker:
        words = [job, "--service-url", broker.url, "--admin-url", "http://127.0.0.1:9", "--topics", "orders", *more]
        code = main([*words, "--auth-params", "token:wrong"])
    complaint = capsys.readouterr().err
    assert code == 2
    assert "orders" in complaint
    assert "AuthenticationError: wrong token" in complaint
    assert "right" not in complaint


def test_a_place_for_the_report_is_looked_at_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    report = f"{tmp_path}/file/report"
    assert main(["audit", "--admin-url", "http://127.0.0.1:9", "--report", report]) == 2
    assert f"--report {report}: " in capsys.readouterr().err


def test_an_admin_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--admin-url", "http://127.0.0.1:9", "--option", "pollTimeoutMs=200"]) == 2
    assert "http://127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["land", "--topics", "absent", "--to", "nowhere"],
        ["reconcile", "--expected", "absent", "--found", "parquet:nowhere"],
        ["reconcile", "--expected", "parquet:nowhere", "--found", "absent"],
    ],
)
def test_the_broker_is_asked_for_the_topics_before_spark_starts(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def session(_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(command_line, "_session", session)
    with ScriptedBroker({}) as broker:
        code = main([*words, "--service-url", broker.url, "--admin-url", "http://127.0.0.1:9", "--option", "pollTimeoutMs=200"])
    complaint = capsys.readouterr().err
    assert (code, complaint.count("\n")) == (2, 1), "one line"
    assert "http://127.0.0.1:9" in complaint or "absent" in complaint


@pytest.mark.parametrize("place", ["/nowhere", ""])
def test_a_java_that_is_not_there_is_told_with_the_remedy_before_spark_is_begun(
    place: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(land_job, "check", lambda *_: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", place)
    code = main(["land", "--topics", "orders", "--to", str(tmp_path / "landed")])
    complaint = capfd.readouterr().err
    assert (code, complaint.count("\n")) == (2, 1), complaint
    assert f"JAVA_HOME={place}" in complaint or not place
    assert "Java 17 or later" in complaint


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers HTTP: option service.url wants the port of the binary protocol, 6650"),
        (bytes.fromhex("15030300020246"), "speaks TLS: option service.url wants pulsar\\+ssl://"),
    ],
)
def test_a_port_of_another_protocol_is_told_with_the_right_one(
    first: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with OtherProtocol(first) as server:
        words = ["--service-url", f"pulsar://{server.address}", "--admin-url", "http://127.0.0.1:9"]
        code = main(["dead-letters", "--topics", "orders", *words])
    complaint = capsys.readouterr().err
    assert (code, complaint.count("\n")) == (2, 1)
    assert re.search(said, complaint)
    assert "asked again" not in complaint, "it would be the same"


def test_a_port_without_http_is_told_with_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    with OtherProtocol(b"") as server:
        code = main(["audit", "--admin-url", f"http://{server.address}", "--option", "pollTimeoutMs=200"])
    complaint = capsys.readouterr().err
    assert (code, complaint.count("\n")) == (2, 1)
    assert "option admin.url wants the port of HTTP, 8080 where" in complaint


class OtherProtocol(ScriptedServer):
    """Answers the first bytes of anybody with these, and hangs up."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self._bytes = answer

    def _talk(self, connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(self._bytes)


@pytest.mark.parametrize("words", [["--option", "mode"], ["--option", "colour=red"], ["--option", "mode=PERMISSIVE"]])
def test_a_wrong_option_is_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--topics", "a", "--to", "b", "--name", "n", *words]) == 2
    assert words[1].partition("=")[0] in capsys.readouterr().err


def test_landing_where_nothing_can_be_written(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    made(standalone, topic)
    spark.run(f"{JOBS}:write_range", options={**options, "topic": topic}, rows=10, partitions=1)
    (tmp_path / "file").write_text("")
    to = tmp_path / "file" / "landed"
    code, _, complaint = spark.run(f"{JOBS}:command", words=land(standalone, topic, to))
    assert code == 2
    assert f"--to {to}: nothing can be written there" in complaint
    report = str(tmp_path / "report")
    code, _, complaint = spark.run(
        f"{JOBS}:command", words=land(standalone, f"{topic}-absent", tmp_path / "l", "--report", report)
    )
    assert code == 2
    assert f"{topic}-absent" in complaint
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("to", ["hdfs://127.0.0.1:9/landed", "lake://landed", " "])
def test_a_place_that_cannot_be_looked_at_is_named(spark: SparkProcess, standalone: Ready, topic: str, to: str) -> None:
    made(standalone, topic)
    words = ["land", *urls(standalone), "--topics", topic, "--to", to]
    code, _, complaint = spark.run(f"{JOBS}:command", words=words)
    assert code == 2
    assert f"--to {to}".strip() in complaint


@pytest.mark.parametrize(
    ("written", "said"), [("", "PATH_NOT_FOUND"), ("text", "is not a Parquet file"), ("other", "no column key, value")]
)
def test_a_side_that_is_no_landed_copy_is_named_with_the_remedy(
    spark: SparkProcess, standalone: Ready, topic: str, tmp_path: Path, written: str, said: str
) -> None:
    made(standalone, topic)
    place = tmp_path / "landed"
    if written == "text":
        place.mkdir()
        (place / "file.parquet").write_text("no Parquet")
    if written == "other":
        spark.run(f"{JOBS}:land_twice", to=str(tmp_path))
        (tmp_path / "data").rename(place)
    words = ["reconcile", *urls(standalone), "--expected", topic, "--found", f"parquet:{place}"]
    code, _, complaint = spark.run(f"{JOBS}:command", words=words)
    assert code == 2
    assert f"parquet:{place}: " in complaint
    assert said in complaint
    assert "parquet:DIRECTORY/data" in complaint


def test_a_full_disk_ends_a_landing_which_goes_on_when_there_is_room(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    """Two megabytes of values that nothing makes smaller, to a disk with one."""
    need_loop_mounts()
    made(standalone, topic)
    spark.run(f"{JOBS}:write_random", options={**options, "topic": topic}, rows=2000, size=1000)
    with LoopMount(16) as mount:
        to = mount.path / "landed"
        words = land(standalone, topic, to)
        filler = mount.path / "filler"
        free = shutil.disk_usage(mount.path).free
        filler.write_bytes(b"x" * (free - (1 << 20)))
        code, _, complaint = spark.run(f"{JOBS}:command", words=words)
        assert code == 2
        assert f"{topic} to {to}: ended before its first batch" in complaint
        assert "No space left on device" in complaint
        assert list((to / "data").iterdir()) == []
        filler.unlink()
        code, out, complaint = spark.run(f"{JOBS}:command", words=words)
        assert (code, json.loads(out or "{}").get("messages")) == (0, 2000), complaint
        reconcile = ["reconcile", *urls(standalone), "--expected", topic, "--found", f"parquet:{to}/data", "--by", "value"]
        code, out, complaint = spark.run(f"{JOBS}:command", words=[*reconcile, "--scope", "none"])
        assert code == 0, out or complaint


def test_data_that_were_deleted_before_they_were_landed_are_told(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    to, given = tmp_path / "landed", {**options, "topic": topic}
    words, path = land(standalone, topic, to), topic.replace("://", "/")
    made(standalone, topic)
    spark.run(f"{JOBS}:write_range", options=given, rows=20, partitions=1)
    code, _, complaint = spark.run(f"{JOBS}:command", words=words)
    assert code == 0, complaint
    put(standalone, f"{path}?force=true", method="DELETE")
    made(standalone, topic)
    spark.run(f"{JOBS}:write_range", options=given, rows=5, partitions=1)
    code, _, complaint = spark.run(f"{JOBS}:command", words=words)
    assert code == 2
    assert f"{topic}: the messages from " in complaint
    assert "failOnDataLoss=false" in complaint
    assert len(landed(spark, to)) == 20
    code, out, complaint = spark.run(f"{JOBS}:command", words=[*words, "--option", "failOnDataLoss=false"])
    assert (code, json.loads(out or "{}").get("messages")) == (0, 5), complaint


def killed_and_started(server: ServerProcess, when: Callable[[], bool]) -> None:
    until(when, 300)
    server.kill()
    server.start()


def test_a_broker_that_is_killed_and_comes_back_is_waited_for(tmp_path: Path, topic: str) -> None:
    """A replay from the topic and to it waits, in the midst of its messages."""
    with ServerProcess(tmp_path / "server", SETTINGS) as server:
        ready = server.start()
        made(ready, topic)
        to = made(ready, f"{topic}-copy", deduplicates=True)
        words = ["replay", *urls(ready), "--topics", topic, "--to", to, "--name", "n"]
        published(ready, topic, 3000, batching=True)
        one_each = ["--sink-option", "pulsar.producer.batchingMaxMessages=1"]
        with JobProcess([*words, *one_each]) as job:
            killed_and_started(server, lambda: arrived(ready, to) > 0 or job.has_ended())
            ended = job.result()
        assert ended.code == 0, ended.complaint
        assert values(ready, to) == [f"m{number}" for number in range(3000)]
        # one that cannot wait that long says where it was, and the next run goes on there
        second = made(ready, f"{topic}-second", deduplicates=True)
        words[words.index("--to") + 1] = second
        with JobProcess([*words, *one_each, "--option", "pollTimeoutMs=3000"]) as job:
            until(lambda: arrived(ready, second) > 0 or job.has_ended(), 300)
            server.kill()
            given_up = job.result()
        assert given_up.code == 2 or given_up.facts["messages sent"] == 3000  # it was quicker than the kill
        assert given_up.code == 0 or topic in given_up.complaint
        server.start()
        ended = run_job([*words, *one_each])
        assert ended.code == 0, ended.complaint
        assert values(ready, second) == [f"m{number}" for number in range(3000)]


def arrived(server: Ready, topic: str) -> int:
    return int(stats(server, topic.replace("://", "/"))["msgInCounter"])


def test_a_landing_in_the_midst_of_which_its_broker_is_killed(spark: SparkProcess, tmp_path: Path, topic: str) -> None:
    """The job waits, or ends with an error and goes on with the next run: in the end each message is there once."""
    with ServerProcess(tmp_path / "server", SETTINGS) as server:
        ready = server.start()
        made(ready, topic)
        published(ready, topic, 4000, batching=True)
        to = tmp_path / "landed"
        words = land(ready, topic, to, "--max-messages", "500")
        spark.begin(f"{JOBS}:command", words=words)
        killed_and_started(server, lambda: any(to.glob("data/batch=*")) or spark.has_answered_within(0.05))
        code, _, complaint = spark.result()
        assert code in (0, 2)
        if code:
            assert topic in complaint
            code, _, complaint = spark.run(f"{JOBS}:command", words=words)
        assert code == 0, complaint
        assert sorted(landed(spark, to)) == sorted(f"m{number}" for number in range(4000))
