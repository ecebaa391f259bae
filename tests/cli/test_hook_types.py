"""Rows of `hooks` that are not commands, and what a row's answer does to the turn,
under the real program.
"""

import json
import shlex
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, events, result, serving, steps
from tests.cli.test_hooks import DONE, OUTSIDE, noted, noting, results, row
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest
from tests.support.sandbox_support import has_sandbox

Heard = list[tuple[str, dict[str, str], dict[str, Any]]]


@contextmanager
def listening(answers: dict[str, tuple[int, str]]) -> Generator[tuple[str, Heard], None, None]:
    """Answer posts by their path; yield the address and what was heard: path, headers, JSON."""
    heard: Heard = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            heard.append(
                (self.path, {name.lower(): text for name, text in self.headers.items()}, body)
            )
            status, text = answers.get(self.path, (200, ""))
            self.send_response(status)
            if status == 302:
                self.send_header("location", text)
                text = ""
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: Any, **named: Any) -> None:
            del args, named

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()


def asking(matcher: str = "", **given: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [given]}


def decides(**specific: Any) -> str:
    return json.dumps({"hookSpecificOutput": specific})


@pytest.mark.slow
def test_an_address_is_asked_as_a_command_is(tmp_path: Path) -> None:
    """Its answer decides; what it can't say is a failure that stops nothing;
    a redirect leads nowhere.
    """
    desk = Desk(tmp_path)
    answers = {
        "/guard?v=1": (
            200,
            decides(permissionDecision="deny", permissionDecisionReason="not today"),
        ),
        "/moved": (302, "/other"),
        "/broken": (500, decides(permissionDecision="deny")),
        "/note": (200, "the release is frozen"),
    }
    script = steps(bash("git push", "c1"), bash("echo hi", "c2"), DONE)
    with listening(answers) as (url, heard), serving(script) as server:
        secret = {
            "headers": {"Authorization": "Bearer $MY_TOKEN", "X-Other": "${NOT_NAMED}!"},
            "allowedEnvVars": ["MY_TOKEN"],
        }
        rows = [
            asking("Bash", type="http", url=f"{url}/guard?v=1", **{"if": "Bash(git *)"}, **secret),
            asking("Bash", type="http", url=f"{url}/moved", **{"if": "Bash(echo *)"}),
            asking("Bash", type="http", url=f"{url}/broken", **{"if": "Bash(echo *)"}),
            asking("Bash", type="http", url="http://127.0.0.1:9/none", **{"if": "Bash(echo *)"}),
        ]
        hooks = {"PreToolUse": rows, "UserPromptSubmit": [asking(type="http", url=f"{url}/note")]}
        desk.use(server, hooks=hooks, permission={"bash": "allow"})
        done = desk.run("run", "go", MY_TOKEN="sesame", NOT_NAMED="never")
        assert done.returncode == 0, done.stderr
        assert "not today" in results(server)[0]
        assert results(server)[1].startswith("hi")
        assert "the release is frozen" in json.dumps(server.requests[-1].json["messages"])
    assert [path for path, _, _ in heard] == ["/note", "/guard?v=1", "/moved", "/broken"]
    _, headers, told = heard[1]
    assert headers["authorization"] == "Bearer sesame"
    assert headers["x-other"] == "!"
    assert headers["content-type"] == "application/json"
    assert (told["hook_event_name"], told["tool_input"]["command"]) == ("PreToolUse", "git push")
    for said in ("status 302", "status 500", "can't be reached"):
        assert said in done.stderr


@pytest.mark.slow
def test_a_projects_address_is_asked_once_it_is_trusted_and_not_another_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with listening({}) as (url, heard), serving([DONE]) as server:
        desk.use(server)
        file = desk.work / "codeloop.json"
        file.write_text(json.dumps({"hooks": {"Stop": [asking(type="http", url=f"{url}/one")]}}))
        assert "codeloop trust" in desk.run("run", "go").stderr
        assert not heard
        assert desk.run("trust").returncode == 0
        desk.run("run", "go")
        file.write_text(file.read_text().replace("/one", "/two"))
        assert "codeloop.json changed" in desk.run("run", "go").stderr
    assert [path for path, _, _ in heard] == ["/one"]


def judging(received: ReceivedRequest) -> Answer:
    """Answer as a model that is asked to judge, and as one that works."""
    body = received.json
    text = json.dumps(body["messages"])
    if "You judge an event" in text:
        if "WAVER" in text and "was not JSON" not in text:
            return Answer(text="I am not sure.")
        ok = "git push" not in text
        return Answer(text=json.dumps({"ok": ok, "reason": "" if ok else "the model minds"}))
    if "READ FIRST" in text and "StructuredOutput" in json.dumps(body.get("tools", [])):
        read = call("read", call_id="r1", filePath="rules.txt")
        return steps(
            read, call("StructuredOutput", call_id="r2", ok=False, reason="the rules forbid it")
        )(received)
    return steps(bash("git push", "c1"), bash("echo hi", "c2"), bash("ls", "c3"), DONE)(received)


@pytest.mark.slow
def test_a_model_or_a_subagent_judges_and_its_cost_is_the_sessions(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "rules.txt").write_text("No listing of files.\n")
    log = tmp_path / "log"
    with serving(judging) as server:
        hooks = {
            "PreToolUse": [
                asking(
                    "Bash", type="prompt", prompt="WAVER: may this run? $ARGUMENTS", model="haiku"
                ),
                asking(
                    "Bash",
                    type="agent",
                    prompt="READ FIRST, then say whether this may run.",
                    **{"if": "Bash(ls)"},
                ),
                row(noting(log)),
            ]
        }
        desk.use(server, hooks=hooks, permission={"bash": "allow"}, **OUTSIDE)
        done = desk.run("run", "go")
        assert done.returncode == 0, done.stderr
        assert "the model minds" in results(server)[0]
        assert results(server)[1].startswith("hi")
        assert "the rules forbid it" in results(server)[2]
        assert (
            "local/haiku can't be asked, so local/m is: The provider `local` has no model `haiku`"
            in done.stderr
        )
        asked = [
            each.json for each in server.requests if "You judge an event" in each.body.decode()
        ]
        # Each of three calls twice, and nobody judges what the subagent reads.
        assert len(asked) == 6
        assert '"tool_input":{"command":"git push"' in asked[0]["messages"][1]["content"].replace(
            "\\", ""
        )
        requests = len([each for each in server.requests if b"messages" in each.body])
    cost = json.loads(desk.run("export", noted(log)[0]["session_id"]).stdout)["info"]["cost"]
    assert cost == pytest.approx(requests * (100 * 1.0 + 20 * 2.0) / 1e6)
    stats = json.loads(desk.run("stats", "--json").stdout)
    assert stats["total"]["cost"] == pytest.approx(cost)
    assert "read" in [each["tool_name"].lower() for each in noted(log)]


@pytest.mark.slow
def test_rows_say_what_is_wrong_with_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    wrongs: list[tuple[dict[str, Any], str]] = [
        (
            {"type": "http"},
            "url: expected an address that begins with http:// or https://, got null",
        ),
        ({"type": "http", "url": "file:///etc/passwd"}, "url: expected an address"),
        (
            {"type": "http", "url": "http://h/", "headers": {"a b": "c"}},
            "headers: expected an object of texts",
        ),
        ({"type": "prompt"}, "prompt: expected a text, got null"),
    ]
    for wrong, says in wrongs:
        desk.configure(hooks={"Stop": [asking(**wrong)]})
        assert f"hooks.Stop[0].hooks[0].{says}" in desk.run("run", "go").stderr
    with serving([DONE]) as server:
        hooks = {
            "SessionStart": [asking(type="prompt", prompt="x")],
            "Stop": [
                asking(type="mcp_tool", server="s", tool="t"),
                asking(type="command", command="dir", shell="powershell"),
                row("true", colour="red", statusMessage="Looking"),
            ],
        }
        desk.use(server, hooks=hooks)
        done = desk.run("run", "go")
        assert "hooks of the type 'prompt' are not run at SessionStart" in done.stderr
        assert (
            "hooks of the type 'mcp_tool' are not run: command, http, prompt, agent are"
            in done.stderr
        )
        assert "for the shell 'powershell' are not run" in done.stderr
        assert done.stderr.count("hooks.Stop[2].hooks[0].colour means nothing to codeloop") == 1
        assert "statusMessage" not in done.stderr


STOPS = shlex.quote(
    json.dumps({"continue": False, "stopReason": "enough for today", "suppressOutput": True})
)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PermissionRequest"])
def test_a_call_can_end_the_turn(tmp_path: Path, event: str) -> None:
    """The call after it is not made, the model is not asked again, and the person reads why."""
    desk = Desk(tmp_path)
    both = Answer(calls=(*bash("echo one", "c1").calls, *bash("echo two >> two", "c2").calls))
    with serving(steps(both, DONE)) as server:
        hooks = {event: [row(f"echo {STOPS}", "Bash")]}
        permission = {"bash": "ask" if event == "PermissionRequest" else "allow"}
        desk.use(server, hooks=hooks, permission=permission, snapshot=False)
        done = desk.run("run", "--format", "json", "go")
        assert result(done)["reason"] == "rejected"
        assert "enough for today" in json.dumps(result(done))
        assert len([each for each in server.requests if b'"tools"' in each.body]) == 1
    assert not (desk.work / "two").exists()
    calls = [each["part"]["state"] for each in events(done.stdout) if each["type"] == "tool_use"]
    assert [each["status"] for each in calls] == [
        "completed" if event == "PostToolUse" else "error",
        "error",
    ]


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
def test_a_prompt_can_be_kept_from_the_model(tmp_path: Path, event: str) -> None:
    desk = Desk(tmp_path)
    with serving([DONE]) as server:
        desk.use(server, hooks={event: [row(f"echo {STOPS}")]})
        done = desk.run("run", "go")
        assert done.returncode != 0
        assert "enough for today" in done.stderr
        assert not server.requests


@pytest.mark.slow
def test_a_hook_that_ends_the_turn_counts_more_than_one_that_sends_the_model_on(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving([DONE]) as server:
        desk.use(
            server,
            hooks={"Stop": [row("echo go on >&2; exit 2"), row(f"echo {STOPS}")]},
            small_model="local/m",
        )
        done = desk.run("run", "go")
        assert done.returncode == 0
        assert "enough for today" in done.stderr
        assert "go on" not in json.dumps([each.json for each in server.requests])


@pytest.mark.slow
def test_scripts_read_the_transcript_of_the_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    log, copy = tmp_path / "log", tmp_path / "copy"
    save = f'{noting(log)} cp "$(tail -n 1 {log} | sed \'s/.*"transcript_path":"\\([^"]*\\)".*/\\1/\')" {copy}'
    with serving(steps(bash("echo hi"), DONE)) as server:
        desk.use(server, hooks={"Stop": [row(save)]}, permission={"bash": "allow"}, **OUTSIDE)
        assert desk.run("run", "say hi").returncode == 0
    path = Path(noted(log)[-1]["transcript_path"])
    assert path.is_relative_to(desk.home / "data")
    assert path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in copy.read_text().splitlines()]
    assert [each["type"] for each in lines] == ["user", "assistant", "user", "assistant"]
    prompt, asked, answered, said = (each["message"]["content"] for each in lines)
    assert prompt == [{"type": "text", "text": "say hi"}]
    assert asked[-1] == {
        "type": "tool_use",
        "id": "call_1",
        "name": "Bash",
        "input": {"command": "echo hi", "description": "Runs it"},
    }
    assert answered[0]["tool_use_id"] == "call_1"
    assert answered[0]["content"].startswith("hi")
    assert said == [{"type": "text", "text": "Finished."}]
    session_id = noted(log)[-1]["session_id"]
    assert desk.run("session", "delete", session_id).returncode == 0
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")
def test_a_projects_script_reads_the_transcript_of_its_session_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    script = desk.work / "look.sh"
    script.write_text(
        'path="$(sed "s/.*transcript_path\\":\\"\\([^\\"]*\\)\\".*/\\1/")"\n'
        'grep -c "say hi" "$path" > seen; ls "$(dirname "$path")" > others 2>/dev/null; echo x >> "$path" || true\n'
    )
    (desk.work / "codeloop.json").write_text(json.dumps({"hooks": {"Stop": [row("sh look.sh")]}}))
    with serving([DONE]) as server:
        desk.use(server, sandbox={"mode": "required"})
        assert desk.run("trust").returncode == 0
        assert desk.run("run", "say hi").returncode == 0
    assert (desk.work / "seen").read_text() == "1\n"
    (path,) = (
        each for each in (desk.home / "data").rglob("*.jsonl") if ".sandbox" not in str(each)
    )
    assert "x" not in path.read_text().splitlines()
