"""`codeloop doctor`: each thing that does not work here is named, with what to do about it."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import KEY, Desk, serving
from tests.support.answers import Answer


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def findings(
    desk: Desk, *arguments: str, **environment: str
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code, and what was found by name."""
    done = desk.run("doctor", "--json", *arguments, **environment)
    return done.returncode, {each["name"]: each for each in json.loads(done.stdout)}


@pytest.mark.slow
def test_what_works_is_ok_and_nothing_is_sent(desk: Desk) -> None:
    with serving([Answer(text="ready")]) as server:
        desk.use(server)
        _, found = findings(desk)
        assert not server.requests
        assert found["model"]["text"].startswith("local/m")
        assert "not tried" in found["key"]["text"]
        assert {
            found[name]["state"] for name in ("version", "Python", "model", "key", "rg", "data")
        } == {"ok"}
        assert KEY not in json.dumps(found)
        _, tried = findings(desk, "--online")
        assert len(server.requests) == 1
        assert "answered" in tried["key"]["text"]


@pytest.mark.slow
def test_what_does_not_work_is_a_problem_with_what_to_do(desk: Desk) -> None:
    desk.configure(
        mcp={"gone": {"type": "local", "command": ["no-such-program"]}},
        lsp={"own": {"command": ["nowhere"], "extensions": [".x"]}},
    )
    code, found = findings(
        desk, https_proxy="ftp://me:secret@proxy:1", SSL_CERT_FILE="/nowhere.pem", PATH="/nowhere"
    )
    assert code == 1
    problems = {name: each for name, each in found.items() if each["state"] == "problem"}
    assert {"model", "gone", "own", "https_proxy", "SSL_CERT_FILE"} <= problems.keys()
    assert all(each["fix"] for each in problems.values())
    assert "secret" not in json.dumps(found)
    assert found["git"]["state"] == "warning"


@pytest.mark.slow
def test_a_proxy_where_nothing_listens_is_a_problem_and_one_that_does_is_not(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        alive, dead = (f"127.0.0.1:{each.getsockname()[1]}" for each in (listening, reserved))
        code, found = findings(
            desk,
            http_proxy=alive,
            https_proxy=f"http://me:secret@{dead}",
            all_proxy=f"socks5://{dead}",
            HTTP_PROXY="http://127.0.0.1:port",
        )
    assert code == 1
    assert (found["http_proxy"]["state"], found["http_proxy"]["text"]) == ("ok", f"http://{alive}")
    for name in ("https_proxy", "all_proxy"):
        assert found[name]["state"] == "problem"
        assert "can't be reached: Connection refused" in found[name]["text"]
        assert f"correct {name}, or unset it" in found[name]["fix"]
    assert "is not an address" in found["HTTP_PROXY"]["text"]
    assert "secret" not in json.dumps(found)


@pytest.mark.slow
def test_a_wrong_configuration_is_named_by_file_and_line(desk: Desk) -> None:
    path = desk.home / "config" / "codeloop.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"model": 3}')
    code, found = findings(desk)
    assert (code, found["files"]["state"]) == (1, "problem")
    assert str(path) in found["files"]["text"]


@pytest.mark.slow
def test_a_key_that_is_refused_is_found_online(desk: Desk) -> None:
    with serving([Answer(status=401)]) as server:
        desk.use(server)
        code, found = findings(desk, "--online")
        assert (code, found["key"]["state"]) == (1, "problem")


@pytest.mark.slow
def test_the_page_has_a_line_for_each_and_the_sum(desk: Desk) -> None:
    shown = desk.run("doctor").stdout
    assert "\nmodel\n  PROBLEM model" in shown
    assert sys.executable in shown
    assert shown.splitlines()[-1].endswith("warnings")
