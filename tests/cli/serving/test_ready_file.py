"""The file of --json-ready: whole, or not there."""

import errno
import logging
import os
from pathlib import Path

import pytest

from cli.serving.ready_file import write_whole


def test_a_server_that_is_ready_on_a_full_disk_goes_on_and_logs_what_the_file_would_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_room(self: Path, text: str) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(Path, "write_text", no_room)
    with caplog.at_level(logging.ERROR):
        write_whole(tmp_path / "ready.json", '{"pid": 7}')
    assert list(tmp_path.iterdir()) == []
    assert "make room on its disk" in caplog.text
    assert "pid" in caplog.text


def test_an_error_that_is_not_want_of_room_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "absent" / "ready.json", "{}")
