"""A running server takes up a configuration that changes: rules at once,
the rest at the next turn.
"""

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.program import Desk, bash, serving, steps
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

DONE = Answer(text="Everything is done.")
WAIT = bash("touch begun; until [ -e go ]; do sleep 0.02; done", "call_1")
NEXT = bash("touch second", "call_2")


class Server:
    """A server of a desk, asked over HTTP."""

    def __init__(self, desk: Desk, model: ModelServer, url: str, http: httpx2.Client) -> None:
        self.desk, self.model, self.url, self.http = desk, model, url, http
        self.session: str = http.post("/session", json={}).json()["id"]

    def write(self, **settings: Any) -> Path:
        """Write the project's own configuration."""
        file = self.desk.work / "codeloop.json"
        file.write_text(json.dumps(settings))
        return file

    def say(self, how: str = "message") -> httpx2.Response:
        """Send a prompt."""
        return self.http.post(
            f"/session/{self.session}/{how}", json={"parts": [{"type": "text", "text": "go"}]}
        )

    def log(self) -> str:
        """Read what the server has logged."""
        return "".join(file.read_text() for file in (self.desk.home / "data" / "log").iterdir())


@contextmanager
def running(tmp_path: Path, answers: Callable[[Any], Answer]) -> Generator[Server]:
    desk = Desk(tmp_path)
    with serving(answers) as model:
        desk.use(model, permission={"bash": "allow"})
        process = desk.start("serve", "--port", "0", "--password", "p")
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            with httpx2.Client(
                base_url=url, auth=("opencode", "p"), timeout=60, verify=False
            ) as http:
                yield Server(desk, model, url, http)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_a_rule_that_changes_while_a_turn_runs_holds_for_its_next_call(tmp_path: Path) -> None:
    with running(tmp_path, steps(WAIT, NEXT, DONE)) as it:
        it.write()  # what appears while a sandboxed command runs counts as its own
        assert it.say("prompt_async").status_code == 204
        until((it.desk.work / "begun").exists)
        it.write(permission={"bash": "deny"})
        (it.desk.work / "go").touch()
        until(lambda: it.session not in it.http.get("/session/status").json())
        assert not (it.desk.work / "second").exists()
        parts = [
            part
            for each in it.http.get(f"/session/{it.session}/message").json()
            for part in each["parts"]
        ]
        states = [part["state"] for part in parts if part["type"] == "tool"]
        assert [state["status"] for state in states] == ["completed", "error"]
        assert "Permission denied by the rule bash" in states[1]["error"]
        assert "The configuration has changed" in it.log()


@pytest.mark.slow
def test_the_next_turn_uses_the_new_configuration(tmp_path: Path) -> None:
    with running(tmp_path, lambda _: DONE) as it:
        it.say()
        agent = it.desk.home / "config" / "agent" / "helper.md"
        agent.parent.mkdir(parents=True)
        agent.write_text("---\nmode: primary\n---\nYou are the helper of these tests.\n")
        file = it.desk.home / "config" / "codeloop.json"
        settings = json.loads(file.read_text())
        settings["provider"]["local"]["models"]["other"] = {"tool_call": True}
        file.write_text(json.dumps({**settings, "model": "local/other"}))
        it.session = it.http.post("/session", json={"agent": "helper"}).json()["id"]
        assert it.say().json()["info"]["modelID"] == "other"
        assert b"You are the helper of these tests." in it.model.requests[-1].body or any(
            b"You are the helper of these tests." in each.body for each in it.model.requests
        )


@pytest.mark.slow
def test_a_file_that_the_configuration_names_is_noticed_when_it_changes(tmp_path: Path) -> None:
    with running(tmp_path, lambda _: DONE) as it:
        named = tmp_path / "secrets" / "model.txt"
        named.parent.mkdir()
        named.write_text("local/m\n")
        file = it.desk.home / "config" / "codeloop.json"
        settings = json.loads(file.read_text())
        settings["provider"]["local"]["models"]["other"] = {"tool_call": True}
        file.write_text(json.dumps({**settings, "model": f"{{file:{named}}}"}))
        assert it.say().json()["info"]["modelID"] == "m"
        named.unlink()
        assert it.say().json()["info"]["modelID"] == "m"
        named.write_text("local/other\n")
        it.session = it.http.post("/session", json={}).json()["id"]
        assert it.say().json()["info"]["modelID"] == "other"
        assert f"the file {named} of" in it.log()


@pytest.mark.slow
def test_a_configuration_that_can_t_be_used_leaves_the_old_one_and_is_told_with_its_line(
    tmp_path: Path,
) -> None:
    with running(tmp_path, lambda _: DONE) as it:
        file = it.write(permission={"bash": "ask"})
        assert it.say().status_code == 200
        file.write_text('{\n  "permission": {"bash": "allow",,}\n}')
        assert it.say().status_code == 200
        assert it.http.get("/config").json()["permission"]["bash"] is not None
        assert f"can't be used, so the one before holds: {file}:2:" in it.log()
        it.write(username="somebody", snapshot=True)
        assert it.say().status_code == 200


@pytest.mark.slow
def test_attach_shows_what_is_ignored_and_what_does_nothing_yet(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.work.joinpath("codeloop.json").write_text(
        json.dumps({"provider": {"x": {}}, "shell": "/bin/evil"})
    )
    with serving(lambda _: DONE) as model:
        desk.use(model, experimental={"x": True}, permision={})
        process = desk.start("serve", "--port", "0", "--password", "p")
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            for done in (
                desk.run("attach", url, "--password", "p", stdin="hello\nagain\n"),
                desk.run("run", "--attach", url, "--password", "p", "hello"),
            ):
                said = done.stderr
                assert (
                    said.count(
                        "is not trusted, so its configuration can only tighten yours. Ignored: "
                    )
                    == 1
                )
                assert said.count("Not supported yet and ignored: experimental.x (") == 1
                assert said.count("Did you mean `permission`?") == 1
                assert done.returncode == 0
        finally:
            process.terminate()
            process.communicate(timeout=60)
