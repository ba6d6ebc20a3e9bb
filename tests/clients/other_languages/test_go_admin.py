"""Apache's Go admin package: `tests/clients/go/admin_actions`, everyday actions over all areas, each checked by its effect."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.clients.suite import run_suite

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent.parent / "go"
ACTIONS_MIN = 120
AREAS = (
    "clusters",
    "tenants",
    "brokers",
    "namespaces",
    "namespace policies",
    "topics",
    "subscriptions",
    "topic policies",
)


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
@pytest.mark.timeout(600)
def test_every_action_of_the_go_admin_package_has_its_effect(tmp_path: Path) -> None:
    output = run_suite(["sh", "-c", "go run ./admin_actions || true"], HERE, tmp_path, 540)
    actions = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert [action for action in actions if not action["ok"]] == [], output
    assert len(actions) >= ACTIONS_MIN, output
    assert set(AREAS) <= Counter(action["area"] for action in actions).keys()
