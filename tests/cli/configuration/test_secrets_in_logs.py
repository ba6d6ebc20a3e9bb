"""Secrets of the configuration stand in no log line: not at the start, not in an error, not in the audit log."""

import json
import urllib.error
import urllib.request
from pathlib import Path

from tests.clients.server_process import ServerProcess

CANARY = "canary-a1b2c3"
AUDITED = f"/admin/v2/brokers/configuration/brokerClientAuthenticationParameters/{CANARY}"


def test_cve_2025_30677_a_server_with_secrets_in_its_configuration_writes_none_of_them_down(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    settings = (f"managedLedgerPassword={CANARY}", f"auditLogFile={audit}")
    with ServerProcess(tmp_path, settings) as server:
        server.start()
        assert server.ready is not None
        web = server.ready.web_url
        body = json.dumps({"serviceUrl": "http://other:8080", "brokerClientAuthenticationParameters": CANARY}).encode()
        for path, content in ((AUDITED, b""), ("/admin/v2/clusters/other", body)):
            request = urllib.request.Request(f"{web}{path}", content, {"Content-Type": "application/json"}, method="PUT")
            try:
                urllib.request.urlopen(request, timeout=60).close()
            except urllib.error.HTTPError as refused:  # whether it is done is not the question
                refused.close()
        assert server.stop() == 0
    told = audit.read_text()
    assert [line.split("path=")[1].split()[0] for line in told.splitlines()] == [
        AUDITED.replace(CANARY, "*****"),
        "/admin/v2/clusters/other",
    ]
    assert CANARY not in told
    assert CANARY not in server.log.read_text()
    assert "admin request" not in server.log.read_text()
