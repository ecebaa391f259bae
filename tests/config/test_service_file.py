"""`service.json`, by which clients of OpenCode 2 find a server."""

import json
import os
import stat
from pathlib import Path

import pytest

from codeloop.config.service_file import PublishedService, publish_service, withdraw_service
from codeloop.kit.processes import read_start_time
from codeloop.schema.errors import CodeloopError


def test_only_its_owner_reads_it_and_it_goes_with_its_server(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    service = PublishedService("http://127.0.0.1:1", os.getpid(), "1", "secret")
    file = publish_service(tmp_path, environment, service)
    assert file == tmp_path / "state" / "opencode" / "service.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {
        "url": "http://127.0.0.1:1",
        "pid": os.getpid(),
        "version": "1",
        "password": "secret",
        "started": read_start_time(os.getpid()),
    }
    withdraw_service(tmp_path, environment)
    assert not file.exists()


def test_a_service_that_runs_is_not_replaced(tmp_path: Path) -> None:
    other = PublishedService("http://127.0.0.1:1", os.getppid())
    file = publish_service(tmp_path, {}, other)
    mine = PublishedService("http://127.0.0.1:2", os.getpid())
    with pytest.raises(CodeloopError, match="A service runs at"):
        publish_service(tmp_path, {}, mine)
    withdraw_service(tmp_path, {})
    assert file.exists()
    # Another process has the id of one that has ended.
    file.write_text(file.read_text().replace(read_start_time(os.getppid()), "1 of long ago"))
    assert publish_service(tmp_path, {}, mine) == file
    file.write_text("{")
    publish_service(tmp_path, {}, mine)
    assert json.loads(file.read_text())["pid"] == os.getpid()
