"""Work trees from the command line: runs in one, models compared in several,
and how sessions stand.
"""

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, serving
from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest


def answer(received: ReceivedRequest) -> Answer:
    """Write a file that names the model, then say so."""
    body = json.loads(received.body)
    if not body.get("tools"):
        return Answer(text="A title")
    model = body["model"]
    if body["messages"][-1]["role"] == "tool":
        return Answer(text=f"Done by {model}.")
    prompt = json.dumps(body["messages"][-1])
    name = f"{'login-' if 'login' in prompt else 'try-' if 'try it' in prompt else ''}{model}.txt"
    arguments = json.dumps({"filePath": name, "content": f"{model}\n"})
    return Answer(calls=(Call("write", arguments, "call_write"),))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    with serving(answer) as server:
        desk.git("init", "-q", "-b", "main")
        (desk.work / "below").mkdir()
        (desk.work / "below" / "a.txt").write_text("one\n")
        desk.git("add", "-A")
        desk.git("commit", "-q", "-m", "first")
        desk.use(server)
        file = desk.home / "config" / "codeloop.json"
        settings = json.loads(file.read_text())
        settings["provider"]["local"]["models"]["n"] = settings["provider"]["local"]["models"]["m"]
        file.write_text(json.dumps(settings))
        yield desk


def overview(desk: Desk) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(desk.run("worktree", "list", "--json").stdout)}


def test_a_run_works_in_its_own_tree_and_comes_back_to_it(desk: Desk) -> None:
    done = desk.run("run", "--worktree", "one", "please write")
    assert (done.returncode, done.stdout) == (0, "Done by m.\n"), done.stderr
    assert "Work tree one" in done.stderr
    row = overview(desk)["one"]
    assert row["changed"] == ["m.txt"]
    assert not (desk.work / "m.txt").exists()
    again = desk.run("run", "--worktree", "one", "--continue", "please write again")
    assert (again.returncode, "Work tree one again" in again.stderr) == (0, True), again.stderr
    sessions = json.loads(desk.run("status", "--json").stdout)
    assert [(each["state"], each["directory"]) for each in sessions] == [
        ("finished", row["directory"])
    ]
    assert desk.run("run", "--base", "main", "hi").returncode == 2
    assert desk.run("run", "--worktree", "one", "--base", "main", "hi").returncode == 2
    refused = desk.run("worktree", "remove", "one")
    assert (refused.returncode, "not committed: m.txt" in refused.stderr) == (1, True)
    assert desk.run("worktree", "merge", "one").returncode == 0
    assert (desk.work / "m.txt").read_text() == "m\n"
    assert desk.run("worktree", "remove", "--clean").stdout == "Removed one.\n"


def test_the_words_of_a_prompt_name_the_tree(desk: Desk) -> None:
    done = desk.run("run", "--worktree", "fix the login page")
    assert done.returncode == 0, done.stderr
    assert "fix-login-page" in overview(desk)
    assert desk.run("worktree", "remove", "--force", "fix-login-page").returncode == 0
    assert desk.git("show", "codeloop/fix-login-page:login-m.txt") == "m\n"


@pytest.mark.slow
def test_with_attach_the_server_makes_the_work_tree(desk: Desk) -> None:
    server = desk.start("serve", "--port", "0")
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        done = desk.run(
            "run", "--attach", url, "--dir", str(desk.work), "--worktree", "far", "try it"
        )
        assert (done.returncode, done.stdout) == (0, "Done by m.\n"), done.stderr
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert overview(desk)["far"]["changed"] == ["try-m.txt"]
    assert not (desk.work / "try-m.txt").exists()


def test_models_are_compared_side_by_side_and_one_file_is_kept(desk: Desk) -> None:
    done = desk.run(
        "compare",
        "-m",
        "local/m",
        "-m",
        "local/n",
        "--check",
        "test -f try-n.txt",
        "--json",
        "try it",
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert (first["model"], first["check"], [each["file"] for each in first["files"]]) == (
        "local/m",
        1,
        ["try-m.txt"],
    )
    assert (second["model"], second["check"], len(second["files"])) == ("local/n", 0, 1)
    assert second["cost"] > 0
    assert desk.run("worktree", "merge", second["name"], "--file", "try-n.txt").returncode == 0
    assert (desk.work / "try-n.txt").read_text() == "n\n"
    failed = desk.run("compare", "-m", "local/m", "-m", "local/n", "--check", "false", "try it")
    assert (failed.returncode, "failed (1)" in failed.stdout) == (1, True), failed.stderr
    assert desk.run("compare", "-m", "local/m", "try it").returncode == 2
    marker = Path(desk.options()["env"]["HOME"]) / "left"
    # A model may write such a one.
    (desk.work / "check.sh").write_text(f"touch {marker} 2>/dev/null || true\n")
    desk.git("add", "check.sh")
    desk.git("commit", "-q", "-m", "check")
    ran = desk.run(
        "compare", "-m", "local/m", "-m", "local/n", "--check", "sh check.sh", "--json", "try it"
    )
    assert [each["check"] for each in json.loads(ran.stdout)] == [0, 0]
    has_sandbox = json.loads(desk.run("debug", "sandbox", "--json").stdout)["backend"]
    assert marker.exists() == (not has_sandbox), "the check runs in the sandbox"


@pytest.mark.slow
def test_a_comparison_answers_nothing_that_another_session_asks(tmp_path: Path) -> None:
    desk, has_begun, has_asked = Desk(tmp_path), threading.Event(), threading.Event()

    def ask(received: ReceivedRequest) -> Answer:
        body = json.loads(received.body)
        if not body.get("tools"):
            return Answer(text="A title")
        if body["messages"][-1]["role"] == "tool":
            return Answer(text="Done.")
        if b"compare this" in received.body:
            has_begun.set()
        fetch = Call("webfetch", json.dumps({"url": "http://127.0.0.1:1/x"}))
        return Answer(
            calls=(fetch,), until=has_asked.is_set if b"compare this" in received.body else None
        )

    with serving(ask) as server:
        desk.git("init", "-q", "-b", "main")
        desk.git("commit", "-q", "--allow-empty", "-m", "first")
        desk.use(server)
        comparison = desk.start(
            "compare", "--auto", "-m", "local/m", "-m", "local/m", "--json", "compare this"
        )
        assert has_begun.wait(60)
        words = ("run", "--input-format", "stream-json", "--output-format", "stream-json")
        other = subprocess.Popen(
            [*desk.command, *words, "--permission-prompt-tool", "stdio"],
            **desk.options(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write('{"type":"user","message":{"role":"user","content":"fetch it"}}\n')
        other.stdin.flush()
        assert any('"can_use_tool"' in line for line in other.stdout)
        has_asked.set()
        assert len(json.loads(comparison.communicate(timeout=60)[0])) == 2
        waiting = json.loads(desk.run("status", "--waiting", "--json").stdout)
        assert [each["state"] for each in waiting] == ["waits"], waiting
        other.communicate(timeout=60)


def test_outside_a_repository_the_reason_is_said(tmp_path: Path) -> None:
    done = Desk(tmp_path).run("run", "--worktree", "one", "hi")
    assert (done.returncode, "git init" in done.stderr) == (1, True), done.stderr
