"""The log of runs: what failed is in it, with status and request;
nothing that was said, and no key.
"""

import logging
from pathlib import Path

import pytest

from codeloop.cli.target.process_log import log_to_file
from tests.cli.program import KEY, Desk, serving, steps
from tests.support.answers import Answer, Call

REFUSED = Answer(
    status=400, body=f'{{"error": {{"message": "No, {KEY}."}}}}', headers={"x-request-id": "req_7"}
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_failed_request_is_found_again_by_its_id(desk: Desk) -> None:
    with serving([REFUSED]) as server:
        desk.use(server)
        done = desk.run("run", "--print-logs", "a private wish")
        assert done.returncode == 3
        assert "ERROR" in done.stderr
    shown = desk.run("debug", "logs")
    (line,) = [line for line in shown.stdout.splitlines() if "ERROR" in line]
    assert "APIError (status 400, request req_7)" in line
    assert "private wish" not in shown.stdout
    assert KEY not in shown.stdout
    path = Path(desk.run("debug", "logs", "--path").stdout.strip())
    assert path.stat().st_mode & 0o077 == 0
    assert desk.run("debug", "logs", "--session", "ses_nobody").stdout == ""


@pytest.mark.slow
def test_a_failed_tool_is_a_warning_and_the_level_is_chosen(desk: Desk) -> None:
    failing = Answer(calls=(Call("read", '{"filePath": "none.py"}'),))
    with serving(steps(failing, Answer(text="Done."))) as server:
        desk.use(server)
        desk.run("run", "--log-level", "ERROR", "try it")
        assert desk.run("debug", "logs").stdout == ""
        desk.run("run", "try it", CODELOOP_LOG="warn")
        assert "tool read failed" in desk.run("debug", "logs", "-n", "5").stdout
        assert desk.run("run", "try it", CODELOOP_LOG="loud").returncode == 2


def crash(folder: Path) -> float:
    with log_to_file(folder, "INFO", "codeloop.log"):
        logging.getLogger("codeloop.x").warning(
            "sk-abcdefgh12345678 Authorization: Bearer abcdef https://me:pw@host/x?key=abc&n=1 api_key=abcdefgh"
        )
        return 1 / 0


def test_keys_stay_out_and_crashes_are_kept(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        crash(tmp_path / "log")
    text = (tmp_path / "log" / "codeloop.log").read_text()
    assert "ZeroDivisionError" in text
    assert not [word for word in ("abcdefgh", "abcdef", "me:pw", "key=abc&") if word in text]
