"""`codeloop bench`: tasks in copies of their own, by codeloop, by another program, by nobody;
figures and a page.
"""

import asyncio
import json
import shlex
import signal
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.errors import UsageProblem
from codeloop_automation.benchmark.agents import (
    find_agent,
    parse_opencode_output,
    parse_result_line,
)
from codeloop_automation.benchmark.runner import BenchPlan, run_plan
from codeloop_automation.benchmark.tasks import read_tasks
from tests.cli.program import HANGING, Desk, call, lives, serving, steps
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest

CALC = "def add(a, b):\n    return a - b\n"
TASK = """
repository = "../app"
prompt = "fix add"
check = "python3 check.py"
files = "hidden"
solution = "sed -i 's/a - b/a + b/' calc.py"
"""
OTHER = """#!/bin/sh
test "$1" = "x & <b>" && sed -i 's/a - b/b + a/' calc.py
"""


def make_tasks(desk: Desk) -> Path:
    app, tasks = desk.work / "app", desk.work / "tasks"
    for folder in (app, tasks / "hidden", tasks / "note"):
        folder.mkdir(parents=True)
    (app / "calc.py").write_text(CALC)
    (tasks / "fix.toml").write_text(TASK)
    (tasks / "hidden" / "check.py").write_text(
        "import calc; assert calc.add(2, 3) == 5, '<b>wrong</b>'\n"
    )
    task = 'repository = "../../app"\nprompt = "x & <b>"\ncheck = "test -f note.txt"\nsetup = "echo made > made.txt"'
    (tasks / "note" / "task.toml").write_text(task)
    return tasks


def answer(received: ReceivedRequest) -> Answer:
    """Do what each prompt asks; the second model does nothing."""
    if received.json.get("model") == "idle":
        return Answer(text="I would rather not.")
    if b"fix add" in received.body:
        edit = call("edit", filePath="calc.py", oldString="a - b", newString="a + b")
        return steps(edit, Answer(text="Fixed."))(received)
    return steps(call("write", filePath="note.txt", content="hi\n"), Answer(text="Written."))(
        received
    )


class Page(HTMLParser):
    """Notes what a page loads, and its links within itself."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [tag] if "src" in given or tag in {"script", "link"} else []
        self.links |= {given["href"] or ""} if tag == "a" else set()
        self.ids |= {f"#{given['id']}"} if "id" in given else set()


def test_no_link_that_an_agent_made_is_written_through(tmp_path: Path) -> None:
    tasks, mine = tmp_path / "tasks", tmp_path / "mine"
    (tasks / "hidden/tests").mkdir(parents=True)
    (tasks / "hidden/tests/a.py").write_text("the task's\n")
    (tasks / "hidden/check.py").write_text("the task's\n")
    (tasks / "fix.toml").write_text(TASK.replace("python3 check.py", "cat tests/a.py check.py"))
    (tmp_path / "app").mkdir()
    (tmp_path / "app/note").write_text("a\n")
    mine.mkdir()
    (mine / "a.py").write_text("mine\n")
    agent = find_agent(f"mine=sh -c 'ln -s {mine} tests; ln -s {mine}/a.py check.py' {{prompt}}")
    plan = BenchPlan(read_tasks(tasks), [agent], [None], 1, 60, 1, tmp_path / "sessions")
    (run,) = asyncio.run(run_plan(plan, lambda _run: None))
    assert (mine / "a.py").read_text() == "mine\n"
    assert run.check == "the task's\n" * 2


def test_an_agent_that_works_in_pwd_works_in_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some agents, OpenCode among them, take PWD for the project,
    whatever their working directory is.
    """
    mine = tmp_path / "app"
    (tmp_path / "tasks").mkdir()
    mine.mkdir()
    (mine / "calc.py").write_text(CALC)
    # No shell: that would set PWD itself.
    work = "import os; path = os.environ['PWD'] + '/calc.py'; open(path, 'a').write('# done\\n')"
    (tmp_path / "agent.py").write_text(work)
    task = 'repository = "../app"\nprompt = "x"\ncheck = "grep done calc.py"'
    (tmp_path / "tasks" / "fix.toml").write_text(task)
    monkeypatch.chdir(mine)
    monkeypatch.setenv("PWD", str(mine))
    agent = find_agent(f"mine={shlex.quote(sys.executable)} {tmp_path}/agent.py {{prompt}}")
    plan = BenchPlan(
        read_tasks(tmp_path / "tasks"), [agent], [None], 1, 60, 1, tmp_path / "sessions"
    )
    (run,) = asyncio.run(run_plan(plan, lambda _run: None))
    assert (run.passed, (mine / "calc.py").read_text()) == (True, CALC)


@pytest.mark.slow
def test_agents_and_models_are_compared_on_copies(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    tasks = make_tasks(desk)
    other = tmp_path / "other.sh"
    other.write_text(OTHER)
    other.chmod(0o755)
    with serving(answer) as server:
        desk.use(server, sandbox="off")
        config = desk.home / "config" / "codeloop.json"
        settings = json.loads(config.read_text())
        models = settings["provider"]["local"]["models"]
        models["idle"] = models["m"]
        config.write_text(json.dumps(settings))
        agents = [
            *("--agent", "codeloop", "--agent", "nothing", "--agent", "solution"),
            "--agent",
            f"other={other} {{prompt}}",
        ]
        flags = (
            "--model",
            "local/m",
            "--model",
            "local/idle",
            "--jobs",
            "3",
            "--output",
            "out",
            "--json",
        )
        done = desk.run("bench", str(tasks), *agents, *flags)
    assert done.returncode == 0, done.stderr
    sums = {(each["agent"], each["model"]): each for each in json.loads(done.stdout)}
    rates = {name: each["rate"] for name, each in sums.items()}
    assert rates == {
        ("codeloop", "local/m"): 1.0,
        ("codeloop", "local/idle"): 0.0,
        ("nothing", ""): 0.0,
        ("solution", ""): 0.5,
        ("other", "local/m"): 0.0,
        ("other", "local/idle"): 0.0,
    }
    ours = sums["codeloop", "local/m"]
    assert (ours["runs"], ours["input_tokens"], ours["output_tokens"]) == (2, 400, 80)
    assert ours["cost"] == pytest.approx(0.00056)
    assert sums["other", "local/m"]["cost"] is None
    assert (desk.work / "app" / "calc.py").read_text() == CALC  # only copies were changed
    assert [each.name for each in (desk.work / "app").iterdir()] == ["calc.py"]

    results = json.loads((desk.work / "out" / "results.json").read_text())
    by_name: dict[tuple[str, str, str], Any] = {
        (run["task"], run["agent"], run["model"]): run for run in results["runs"]
    }
    fixed = by_name["fix", "codeloop", "local/m"]
    assert "+    return a + b" in fixed["diff"]
    assert fixed["used"]["session_id"].startswith("ses_")
    assert "+hi" in by_name["note", "codeloop", "local/m"]["diff"]  # a new file, too
    assert "<b>wrong</b>" in by_name["fix", "nothing", ""]["check"]
    assert "b + a" in by_name["note", "other", "local/m"]["diff"]  # the prompt came as one word
    assert "exit code 1" in by_name["fix", "other", "local/m"]["error"]
    assert "names no solution" in by_name["note", "solution", ""]["error"]
    html = (desk.work / "out" / "index.html").read_text()
    page = Page()
    page.feed(html)
    assert page.loaded == []
    sessions = {link for link in page.links if link.startswith("sessions/")}
    assert len(sessions) == 4
    assert all((desk.work / "out" / link).exists() for link in sessions)
    assert page.links - sessions <= page.ids
    assert "<b>wrong</b>" not in html
    assert "2 of 2" in html


@pytest.mark.slow
def test_a_signal_ends_the_agents_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    tasks = make_tasks(desk)
    agent = tmp_path / "slow.sh"
    agent.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 300\n")
    agent.chmod(0o755)
    running = desk.start(
        "bench",
        str(tasks),
        "--task",
        "fix",
        "--agent",
        f"slow={agent} {{prompt}}",
        "--output",
        "out",
    )
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    _, stderr = running.communicate(timeout=HANGING)
    assert (running.returncode, "Interrupted" in stderr) == (130, True)
    assert not lives(int((tmp_path / "pid").read_text()))


def test_what_is_no_task_or_no_agent_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no tasks"):
        read_tasks(tmp_path)
    for text, words in (
        ('prompt = "x"', "missing required field"),
        (f'repository = "{tmp_path}"\nprompt = "x"\ncheck = "true"\ncosts = 1', "unknown field"),
        ('repository = "../gone"\nprompt = "x"\ncheck = "true"', "neither a folder nor an address"),
        ("prompt = ", "is not a task"),
    ):
        (tmp_path / "one.toml").write_text(text)
        with pytest.raises(UsageProblem, match=words):
            read_tasks(tmp_path)
    for agent, words in (
        ("gone", "no agent gone"),
        ("x=cat", "prompt} in COMMAND"),
        ("gone=gone-program {prompt}", "not installed"),
        ("codex:x", "no agent codex:x"),
        ('x=sh -c "{prompt}', "No closing quotation"),
    ):
        with pytest.raises(UsageProblem, match=words):
            find_agent(agent)


def test_what_agents_say_they_used_is_read() -> None:
    line = {
        "type": "step_finish",
        "sessionID": "s",
        "part": {"cost": 0.5, "tokens": {"input": 10, "output": 2, "cache": {"read": 5}}},
    }
    used = parse_opencode_output(
        "\n".join(["noise", json.dumps(line), json.dumps({"type": "text"}), json.dumps(line)])
    )
    assert (used.cost, used.input_tokens, used.output_tokens, used.steps) == (1.0, 30, 4, 2)
    assert parse_opencode_output("noise").error == "It ended without a step."
    assert parse_result_line("").error == "It ended without a result."
