"""An update or a removal of codeloop under a running program is noticed and said,
and nothing is half done.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeloop.kit.version import RELEASE
from tests.cli.program import HANGING, Desk, events, serving, steps
from tests.cli.program import call as call_tool
from tests.cli.terminal import Terminal
from tests.server.test_serve_command import Running, running
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest

ROOT = Path(__file__).resolve().parents[2]
UPDATED = f"codeloop was updated while it ran, from {RELEASE}+gaaaaaaaaa to {RELEASE}+gbbbbbbbbb: restart it."
REMOVED = "codeloop was removed while it ran: install it again, then restart it."


class Site:
    """A folder with an installed package, which can be replaced by that of another commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.install("a")

    @property
    def package(self) -> Path:
        return self.folder / "codeloop"

    def install(self, commit: str) -> None:
        shutil.copytree(
            ROOT / "src" / "codeloop",
            self.package,
            copy_function=link,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        first_file = self.package / "__init__.py"
        text = first_file.read_bytes()
        first_file.unlink()
        first_file.write_bytes(text)
        (self.package / "version.txt").write_text(f"{RELEASE}+g{commit * 9}\n")

    def remove(self) -> None:
        shutil.rmtree(self.package)

    def update(self) -> None:
        """Install another commit, in which modules have other names,
        as `pip` does: the old one is removed first.
        """
        self.remove()
        self.install("b")
        for file in self.package.rglob("*.py"):
            if file.name != "__init__.py":
                file.rename(file.with_name(f"new_{file.name}"))

    def make_desk(self, folder: Path, server: Any = None) -> Desk:
        desk = Desk(folder, {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"})
        if server is not None:
            desk.use(server)
        return desk


def link(source: str, target: str) -> None:
    os.link(source, target)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


def ask(server: Running, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answered = server.ask(method, path, server.own(), body="" if body is None else json.dumps(body))
    return answered.status, json.loads(answered.body) if answered.body else None


def run(desk: Desk, *arguments: str) -> tuple[int, str, str]:
    process = desk.start("run", *arguments)
    stdout, stderr = process.communicate(timeout=HANGING)
    return process.returncode, stdout, stderr


def after_update(
    site: Site, change: Callable[[Site], None], *answers: Answer
) -> Callable[[ReceivedRequest], Answer]:
    """Answer as `steps` does, with the change of the installation before the first answer."""
    choose = steps(*answers)
    changed: list[bool] = []

    def choose_later(received: ReceivedRequest) -> Answer:
        if not changed:
            changed.append(True)
            change(site)
        return choose(received)

    return choose_later


CHANGES = pytest.mark.parametrize(
    ("change", "message"),
    [(Site.update, UPDATED), (Site.remove, REMOVED)],
    ids=["updated", "removed"],
)


@pytest.mark.slow
@CHANGES
def test_a_server_says_so_and_stores_nothing(
    site: Site, tmp_path: Path, change: Callable[[Site], None], message: str
) -> None:
    with (
        serving(steps(Answer(text="Hello"))) as model,
        running(site.make_desk(tmp_path, model)) as server,
    ):
        _, session = ask(server, "POST", "/session", {})
        health = {"healthy": True, "version": f"{RELEASE}+gaaaaaaaaa"}
        messages = f"/session/{session['id']}/message"
        assert (ask(server, "GET", "/global/health"), ask(server, "GET", messages)) == (
            (200, health),
            (200, []),
        )
        change(site)
        expected = {"name": "UnknownError", "data": {"message": message}}
        prompt = {"parts": [{"type": "text", "text": "Say hello"}]}
        assert ask(server, "POST", messages, prompt) == (500, expected)
        # A module that nothing has needed yet.
        assert ask(server, "GET", "/formatter") == (500, expected)
        # The page and its parts.
        page = server.ask("GET", "/")
        assert (page.status, page.body.decode()) == (503, f"{message}\n")
        # What is loaded goes on.
        assert (ask(server, "GET", "/global/health"), ask(server, "GET", messages)) == (
            (200, health),
            (200, []),
        )
        code, _, stderr = server.end()
        assert (code, "Traceback" in stderr) == (0, False)
        assert model.requests == []


@pytest.mark.slow
@CHANGES
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_run_ends_with_its_result(
    site: Site, tmp_path: Path, change: Callable[[Site], None], message: str, form: str
) -> None:
    # A tool that is not imported while the model is waited for.
    fetch = call_tool("webfetch", url="http://127.0.0.1:9/", format="text")
    answers = after_update(site, change, fetch, Answer(text="Done"))
    with serving(answers) as model:
        desk = site.make_desk(tmp_path, model)
        code, stdout, stderr = run(desk, "--format", form, "Look at it")
        requests = [received for received in model.requests if b'"tools"' in received.body]
    assert code == 1
    assert len(requests) == 1
    assert "Traceback" not in stderr
    if form == "text":
        assert message in stderr
    else:
        *_, last = events(stdout)
        assert (last["type"], last["reason"], last["message"]) == ("result", "error", message)
    shutil.rmtree(site.folder)
    exported = Desk(tmp_path).run("export")
    (call,) = [
        part
        for entry in json.loads(exported.stdout)["messages"]
        for part in entry["parts"]
        if part["type"] == "tool"
    ]
    assert call["state"]["status"] == "error"
    assert call["state"]["metadata"]["interrupted"] is True


@pytest.mark.slow
@CHANGES
def test_a_run_that_needs_nothing_more_goes_on(
    site: Site, tmp_path: Path, change: Callable[[Site], None], message: str
) -> None:
    with serving(after_update(site, change, Answer(text="Here I am"))) as model:
        code, stdout, stderr = run(site.make_desk(tmp_path, model), "Say where you are")
    assert (code, stdout) == (0, "Here I am\n"), stderr


@pytest.mark.slow
@CHANGES
def test_the_terminal_ui_says_so_and_can_be_left(
    site: Site, tmp_path: Path, change: Callable[[Site], None], message: str
) -> None:
    with serving(steps(Answer(text="Hello"))) as model:
        terminal = Terminal(site.make_desk(tmp_path, model), term="xterm-256color")
        terminal.wait_for("local/m")
        change(site)
        terminal.type("say hello", "\r")
        terminal.wait_for(message.rpartition(": ")[2])
        # Escape, whose command nothing has needed yet.
        terminal.type("\x1b", "")
        terminal.type("\x04\x03\x03", "")
        assert terminal.end() == 0
        assert model.requests == []


@pytest.mark.slow
def test_the_terminal_ui_ends_with_the_reason_when_its_start_is_cut_off(
    site: Site, tmp_path: Path
) -> None:
    terminal = Terminal(site.make_desk(tmp_path), term="xterm-256color")
    terminal.wait_for("describe a task")
    # As by programs that remove file after file.
    for name in ("app", "tui"):
        shutil.rmtree(site.package / name)
    assert terminal.end() == 1
    assert "codeloop was updated while it ran: restart it." in terminal.shown
    assert "Traceback" not in terminal.shown


@pytest.mark.slow
def test_modules_of_a_checkout_are_refused_once_another_commit_has_changed_them(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    package = desk.work / "src" / "codeloop"
    for name in (
        "__init__",
        "kit/__init__",
        "kit/lazy",
        "kit/new_file",
        "kit/small_files",
        "kit/version",
        "schema/__init__",
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "src" / "codeloop" / f"{name}.py", package / f"{name}.py")
    shutil.copy(ROOT / "src/codeloop/schema/installation.py", package / "schema/installation.py")
    (package / "schema" / "errors.py").write_text("class CodeloopError(Exception): ...")
    for name in ("same", "changed", "gone"):
        (package / f"{name}.py").write_text("NUMBER = 1")
    desk.git("init", "-q")
    commit(desk)
    desk.git("branch", "before")
    for name in ("changed", "gone"):
        (package / f"{name}.py").write_text("NUMBER = 2")
    (package / "gone.py").rename(package / "renamed.py")
    commit(desk)
    script = """
from codeloop.schema.installation import InstallationChanged, watch_late_imports
watch_late_imports()
print("ready", flush=True)
input()
for name in ("same", "changed", "gone", "renamed"):
    try:
        print(name, __import__(f"codeloop.{name}") and "imported")
    except InstallationChanged as error:
        print(name, error)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(desk.work / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    new, old = desk.git("rev-parse", "HEAD")[:9], desk.git("rev-parse", "before")[:9]
    desk.git("checkout", "-q", "before")
    said, _ = process.communicate("\n", timeout=HANGING)
    update = (
        f"codeloop was updated while it ran, from {RELEASE}+g{new} to {RELEASE}+g{old}: restart it."
    )
    assert said.splitlines() == [
        "same imported",
        f"changed {update}",
        f"gone {update}",
        f"renamed {update}",
    ]


def commit(desk: Desk) -> None:
    desk.git("add", ".")
    desk.git("commit", "-qm", "Another")
