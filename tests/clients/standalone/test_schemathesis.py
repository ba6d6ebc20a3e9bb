"""Schemathesis over the OpenAPI page of a standalone: whatever is asked, no answer is a failure of ours (5xx).

One example of each route here. More by hand, on a broker that runs:
`.venv/bin/st --config-file tests/clients/standalone/schemathesis.toml run URL/openapi.json --checks not_a_server_error
--max-examples 50`
"""

import re
import urllib.request
from pathlib import Path

import pytest

from tests.clients.server_process import ServerProcess
from tests.toolchain import ROOT, run_tool

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent
FUZZING = [
    "--phases",
    "fuzzing",
    "--max-examples",
    "1",
    "--request-timeout",
    "60",
    "--generation-deterministic",
    "--workers",
    "1",
]


@pytest.mark.timeout(600)
def test_no_route_answers_anything_with_a_failure_of_ours(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, ("transactionCoordinatorEnabled=true",)) as server:
        web = server.start().web_url
        for path in ("", "/subscription/s"):
            made = urllib.request.Request(f"{web}/admin/v2/persistent/public/default/t{path}", method="PUT")
            with urllib.request.urlopen(made, timeout=10) as answer:
                assert answer.status == 204
        command = [str(ROOT / ".venv" / "bin" / "st"), "--config-file", str(HERE / "schemathesis.toml"), "run"]
        command += [f"{web}/openapi.json", "--checks", "not_a_server_error", "--no-color", *FUZZING]
        output = run_tool(command, tmp_path, 540)
    tested = re.findall(r"Tested: (\d+)", output)
    assert tested, output
    assert int(tested[0]) >= 100, output
