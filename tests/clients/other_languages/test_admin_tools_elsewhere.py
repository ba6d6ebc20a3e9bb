"""Apache's tools at the HTTP port of a broker that serves something else: they are sent on (307) with their bodies, and not in
circles."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import by_owner, started_brokers, until_alone
from tests.clients.python_client import publish, quiet_client, receive
from tests.toolchain import maven_classpath, run_tool

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

HERE = Path(__file__).parent.parent
JAVA = HERE / "java_admin"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[list[BrokerProcess]]:
    with started_brokers(tmp_path_factory.mktemp("elsewhere"), storage) as both:
        until_alone(both)
        yield both


def arguments(brokers: list[BrokerProcess], topic: str) -> list[str]:
    """The first broker is asked; of the topics each broker serves one."""
    return [brokers[0].ready.web_url, *by_owner(brokers, topic).values(), f"{topic}-parts"]


@pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain")
def test_the_java_admin_client_is_sent_on_with_its_bodies(brokers: list[BrokerProcess], topic: str, tmp_path: Path) -> None:
    options = ["-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={JAVA / 'log4j2.properties'}"]
    command = ["java", *options, "-cp", maven_classpath(JAVA / "pom.xml", tmp_path), str(JAVA / "Elsewhere.java")]
    assert "3 right" in run_tool([*command, *arguments(brokers, topic)], tmp_path, 400)


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
def test_the_go_admin_package_is_sent_on_with_its_bodies(brokers: list[BrokerProcess], topic: str) -> None:
    command = ["go", "run", "./admin_elsewhere", *arguments(brokers, topic)]
    assert "3 right" in run_tool(command, HERE / "go", 400)


def test_the_cpp_client_looks_topics_up_over_http_wherever_they_are(brokers: list[BrokerProcess], topic: str) -> None:
    """The C++ client has no admin tool, and follows redirects of lookups. Python's client is that client."""
    topics = list(by_owner(brokers, topic).values())
    for asked in brokers:
        with closing(quiet_client(asked.ready.web_url)) as client:
            for place, name in enumerate(topics):
                consumer = client.subscribe(name, f"over-http-{asked.ready.web_url}")
                publish(client, name, 3, first=10 * place)
                assert receive(consumer, 3) == [f"m{10 * place + each}" for each in range(3)]
                consumer.close()
