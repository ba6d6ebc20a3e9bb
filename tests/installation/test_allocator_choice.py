"""Every way to start a server chooses the C library's allocator, which gives memory back (docs/adr/0036)."""

from pathlib import Path

import pytest

from interpulse.programs import product_environment

ROOT = Path(__file__).resolve().parent.parent.parent


def test_an_installed_program_chooses_the_allocator_unless_its_user_has() -> None:
    assert product_environment({})["PYTHONMALLOC"] == "malloc"
    assert product_environment({"PYTHONMALLOC": "debug"})["PYTHONMALLOC"] == "debug"


@pytest.mark.parametrize("script", ["bin/pulsar", "bin/interpulse", "bin/bookkeeper"])
def test_a_script_chooses_the_allocator_unless_its_user_has(script: str) -> None:
    assert 'PYTHONMALLOC="${PYTHONMALLOC:-malloc}"' in (ROOT / script).read_text()


def test_the_image_chooses_the_allocator() -> None:
    assert "PYTHONMALLOC=malloc" in (ROOT / "Dockerfile").read_text()
