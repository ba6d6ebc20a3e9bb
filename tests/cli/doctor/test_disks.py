"""Names of the disks that doctor looked at."""

from cli.doctor.check import FAIL, Facts, judged
from tests.cli.doctor.test_checks import BY_ID, FULL, SOUND


def test_the_disk_that_has_the_metadata_is_named_as_such() -> None:
    for has_metadata in (False, True):
        facts = Facts({"disks": (SOUND["disks"][0], FULL._replace(path="/m", has_metadata=has_metadata))}, {})
        finding = judged(BY_ID["disk-free"], facts)
        assert finding.level == FAIL
        assert finding.evidence.startswith("/m: ")
        assert ("with the metadata" in finding.evidence) == has_metadata
