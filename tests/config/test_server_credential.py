"""A server's credential is found by who may have it, for the server that it is for."""

import json
import os
import socket
from pathlib import Path

import pytest

from codeloop.config.paths import Paths, find_paths
from codeloop.config.server_credential import (
    find_credential,
    publish_credential,
    withdraw_credential,
)

URL = "http://127.0.0.1:4096"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"CODELOOP_HOME": str(tmp_path)})


def found(paths: Paths, url: str, **environment: str) -> tuple[str, str, str] | None:
    credential = find_credential(paths, url, environment)
    return (
        None if credential is None else (credential.url, credential.username, credential.password)
    )


def test_a_running_servers_credential_is_found_by_each_name_of_this_machine(paths: Paths) -> None:
    publish_credential(paths, URL, "me", "secret")
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert found(paths, f"http://{host}:4096") == (URL, "me", "secret")
        assert found(paths, f"http://user:pass@{host}:4096/path?x=y") == (URL, "me", "secret")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:4097",
        "http://127.0.0.1",
        "https://127.0.0.1:4096",
        "http://127.0.0.1.nip.io:4096",
        "http://example.com:4096",
        "http://127.0.0.1@example.com:4096",
        "http://[::2]:4096",
        "ftp://127.0.0.1:4096",
        "http://127.0.0.1:99999",
        "http://[",
        "127.0.0.1:4096",
        "",
    ],
)
def test_it_is_for_its_own_host_and_port_only(paths: Paths, url: str) -> None:
    publish_credential(paths, URL, "me", "secret")
    assert found(paths, url) is None


def test_of_two_servers_on_one_port_each_has_its_own(paths: Paths) -> None:
    publish_credential(paths, URL, "me", "four")
    publish_credential(paths, "http://[::1]:4096", "me", "six")
    assert found(paths, URL) == (URL, "me", "four")
    assert found(paths, "http://[::1]:4096") == ("http://[::1]:4096", "me", "six")
    assert found(paths, "http://localhost:4096") == (URL, "me", "four"), (
        "and the address to say it to"
    )


def test_a_server_for_other_machines_is_found_on_this_one(paths: Paths) -> None:
    publish_credential(paths, "http://0.0.0.0:4096", "me", "secret")
    assert found(paths, "http://localhost:4096") == (URL, "me", "secret")


def test_a_named_server_without_a_file_gets_what_the_environment_says(paths: Paths) -> None:
    publish_credential(paths, URL, "me", "secret")
    there = "https://far.example"
    assert found(paths, there, OPENCODE_SERVER_PASSWORD="theirs") == (there, "opencode", "theirs")
    both = {
        "CODELOOP_SERVER_PASSWORD": "ours",
        "OPENCODE_SERVER_PASSWORD": "theirs",
        "CODELOOP_SERVER_USERNAME": "you",
    }
    assert found(paths, there, **both) == (there, "you", "ours")
    assert found(paths, there, CODELOOP_SERVER_PASSWORD="") is None
    assert found(paths, URL, **both) == (URL, "me", "secret")


@pytest.mark.parametrize("change", [{"pid": 2**22 + 1}, {"started": "1"}, {"password": 7}])
def test_what_is_not_of_a_living_server_does_not_count_and_goes(
    paths: Paths, change: dict[str, object]
) -> None:
    path = publish_credential(paths, URL, "me", "secret")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert found(paths, URL) is None
    publish_credential(paths, "http://127.0.0.1:5000", "me", "other")
    assert not path.exists()


def test_what_others_may_have_read_or_written_does_not_count(paths: Paths, tmp_path: Path) -> None:
    path = publish_credential(paths, URL, "me", "secret")
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        assert found(paths, URL) is None
    path.chmod(0o600)
    assert found(paths, URL) is not None
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        assert found(paths, URL) is None


def test_a_pipe_or_a_socket_in_its_place_blocks_nobody(paths: Paths) -> None:
    path = publish_credential(paths, URL, "me", "secret")
    path.unlink()
    os.mkfifo(path, 0o600)
    assert found(paths, URL) is None
    path.unlink()
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        try:
            os.chdir(path.parent)
            one.bind(path.name)
        finally:
            os.chdir(here)
        assert found(paths, URL) is None


def test_a_server_takes_back_its_own_only(paths: Paths) -> None:
    path = publish_credential(paths, URL, "me", "secret")
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "pid": os.getppid(), "started": ""})
    )
    withdraw_credential(paths, URL)
    assert path.exists()
    withdraw_credential(paths, URL, of_any=True)
    assert not path.exists()
    withdraw_credential(paths, URL)
