"""HTTP of a bookie about its files, without secrets."""

import json

import pytest

from bookie.web.app import bookie_app
from bookie.web.disk_routes import DiskRoutes
from bookie.web.routes import MASK, is_secret
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, sealed
from tests.bookie.web.asking import ask


def test_marks_and_files_are_told_in_apaches_form() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        app = bookie_app(DiskRoutes(machine.disk, SMALL))
        await bookie.add(sealed(1, 0), KEY)
        await bookie.flush()
        status, text = await ask(app, "/api/v1/bookie/last_log_mark")
        ((key, value),) = json.loads(text).items()
        assert (status, key) == (200, "LastLogMark: Journal Id - 1(0000000000000001.journal)")
        assert int(value.removeprefix("Pos - ")) > 0
        files = json.loads((await ask(app, "/api/v1/bookie/list_disk_file"))[1])
        assert (files["entrylog files"], files["index files"]) == ("00000001.log\t", "00000001.index\t")
        assert files["journal files"].startswith("0000000000000001.journal\t")
        one = json.loads((await ask(app, "/api/v1/bookie/list_disk_file", query="file_type=index"))[1])
        assert one == {"index files": "00000001.index\t"}
        assert (await ask(app, "/api/v1/bookie/list_disk_file", query="file_type=x"))[0] == 400

    on_machine(scenario)


def test_routes_that_mean_nothing_here_say_so() -> None:
    async def scenario(machine: Machine) -> None:
        app = bookie_app(DiskRoutes(machine.disk, SMALL))
        status, text = await ask(app, "/api/v1/bookie/expand_storage", b"")
        assert (status, "another bookie" in text) == (501, True)
        path = "/api/v1/bookie/entry_location_compact"
        assert await ask(app, path) == (200, "{}")
        status, text = await ask(app, path, b'{"entryLocationRocksDBCompact": true}')
        assert (status, "there is no RocksDB" in text) == (200, True)
        assert (await ask(app, path, b""))[0] == 400

    on_machine(scenario)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("tlsKeyStorePassword", True),
        ("bookkeeper_clientSecret", True),
        ("authToken", True),
        ("tlsKeyStorePasswordPath", False),
        ("bookiePort", False),
    ],
)
def test_secrets_are_known_by_their_names(key: str, expected: bool) -> None:
    assert is_secret(key) == expected
    assert MASK not in key
