"""Questions in a terminal: what they say, what answers them, and that nothing can pass for one."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from codeloop.cli.questions.terminal_questions import (
    VIEW_ALL_LINE,
    _format_question,
    format_always,
)
from codeloop.schema.question import QuestionDocument, QuestionInfo
from tests.cli.program import Desk, bash, call, one_after_another, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest
from tests.support.sandbox_support import has_sandbox

Choose = Callable[[ReceivedRequest], Answer]
DONE = Answer(text="Finished.")
END = "or what to do instead: "
DENY = "  n  deny, and stop the turn\n"
OPTIONS = [
    {"label": "SQLite", "description": "a file"},
    {"label": "Postgres", "description": "a server"},
]


def asked(
    tmp_path: Path, *answers: Answer, command: Sequence[str] = ("run", "--title", "T", "work")
) -> str:
    """Run a turn, say no to its first question, and return what was shown before the answer."""
    desk = Desk(tmp_path)
    (desk.work / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (desk.work / ".env").write_text("KEY=1\n")
    skill = desk.home / "config" / "skill" / "postage" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: postage\ndescription: Prices of letters\n---\nText\n")
    with serving(steps(*answers, DONE)) as server:
        desk.use(server, permission={"*": "ask"}, search={"provider": "exa", "apiKey": "k"})
        terminal = Terminal(desk, *command)
        terminal.wait_for(f"\n{DENY}")
        shown = terminal.wait_for(END)
        terminal.type("no")
        terminal.end()
    return shown


def with_subagent(main: Choose, sub: Choose) -> Choose:
    """Let `sub` answer where the first prompt is the subagent's."""

    def choose(received: ReceivedRequest) -> Answer:
        prompts = [message for message in received.json["messages"] if message["role"] == "user"]
        return (sub if "look closely" in str(prompts[0]["content"]) else main)(received)

    return choose


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            bash("npm run build\nnpm test && \\\n  echo done"),
            ["Run a command (bash)", "  │ npm run build", "  │ npm test && \\", "  │   echo done"],
        ),
        (
            call("edit", filePath="calc.py", oldString="a - b", newString="a + b"),
            [
                "Change calc.py (edit)",
                "  │ -    return a - b",
                "  │ +    return a + b",
                "  a  allow always: changing `calc.py`",
            ],
        ),
        (
            call(
                "multiedit",
                filePath="calc.py",
                edits=[{"oldString": "a - b", "newString": "a + b"}],
            ),
            ["Change calc.py (multiedit)", "  │ -    return a - b", "  │ +    return a + b"],
        ),
        (
            call("skill", name="postage"),
            ["Load the skill postage (skill)", "  a  allow always: loading `postage` in"],
        ),
        (
            call("websearch", query="postage prices"),
            [
                "Search the web for postage prices (websearch)",
                "  a  allow always: every web search in this project",
            ],
        ),
        (
            call("write", filePath="new.py", content="x = 1\n"),
            ["Create new.py (write)", "  │ +x = 1"],
        ),
        (
            call(
                "apply_patch",
                patchText="*** Begin Patch\n*** Update File: calc.py\n@@\n-    return a - b\n+    return a + b\n"
                "*** Add File: two.py\n+x = 1\n*** End Patch",
            ),
            [
                "Change 2 files (apply_patch)",
                "  │ calc.py",
                "  │ +    return a + b",
                "  │ two.py",
                "  │ +x = 1",
            ],
        ),
        (
            call("read", filePath=".env"),
            ["Read .env (read)", "  a  allow always: reading `.env` in this project"],
        ),
        (
            call("read", filePath="/etc/hostname"),
            [
                "Read /etc/hostname, outside the project (read)",
                "  a  allow always: every tool on `/etc/hostname` in",
            ],
        ),
        (call("grep", pattern="x", path="/etc"), ["Search /etc, outside the project (grep)"]),
        (
            bash("cat /etc/hostname"),
            [
                "Run a command that works outside the project, in /etc/ (bash)",
                "  │ cat /etc/hostname",
            ],
        ),
        pytest.param(
            call("bash", command="git push", description="Pushes", outside="it needs the SSH key"),
            [
                "Run a command outside the sandbox (bash)",
                "  │ git push",
                "  │ the model says: it needs the SSH key",
            ],
            marks=pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here"),
        ),
        (
            call("bash", command="touch x", workdir="sub"),
            ["Run a command (bash)", "  │ touch x", "  │ in "],
        ),
        (
            call("webfetch", url="https://example.com/x", format="text"),
            ["Fetch https://example.com/x (webfetch)"],
        ),
        (
            call("task", description="Look around", prompt="look", subagent_type="general"),
            [
                "Start the subagent general: Look around (task)",
                "  a  allow always: starting any subagent in this project",
            ],
        ),
        (call("todowrite", todos=[]), ["Update the todo list (todowrite)"]),
        (call("list", path="."), ["List the folder "]),
        (call("glob", pattern="*.py"), ["Find files by the pattern *.py (glob)"]),
        (
            call("question", questions=[{"question": "Q?", "header": "h", "options": OPTIONS}]),
            ["Ask you a question"],
        ),
        (
            call(
                "batch",
                tool_calls=[{"tool": "bash", "parameters": {"command": "ls", "description": "x"}}],
            ),
            ["Run a command (batch)", "  │ ls"],
        ),
    ],
    ids=lambda value: value.calls[0].name if isinstance(value, Answer) else None,
)
def test_a_question_says_what_will_happen_once(
    tmp_path: Path, answer: Answer, lines: list[str]
) -> None:
    shown = asked(tmp_path, answer)
    for line in lines:
        rows = [row for row in shown.splitlines() if row.startswith(line)]
        assert len(rows) == 1, (line, shown)
    assert "  y  allow once\n" in shown
    assert DENY in shown


@pytest.mark.slow
def test_the_third_and_the_fourth_same_call_are_shown_with_what_they_are(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    same = [bash("echo hi", f"c{number}") for number in range(4)]
    with serving(steps(*same, DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for(END)
        terminal.type("y")
        shown = terminal.wait_for(END)
        terminal.type("n")
        terminal.end()
    assert shown.count("Repeat the same call once more: bash (bash)\n  │ echo hi\n") == 2


@pytest.mark.slow
def test_a_subagents_question_says_which_one_asks(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    task = call("task", description="Look around", prompt="look closely", subagent_type="general")
    with serving(with_subagent(steps(task, DONE), steps(bash("ls", "inner"), DONE))) as server:
        desk.use(server, permission={"bash": "ask"})
        terminal = Terminal(desk, "run", "--title", "T", "work")
        shown = terminal.wait_for(END)
        terminal.type("n")
        terminal.end()
    assert "Run a command (bash), for the subagent general “Look around" in shown
    assert "in this project\n" in shown


@pytest.mark.slow
def test_an_answer_for_the_session_is_not_asked_for_again_in_it_and_is_listed_and_revoked(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(bash("echo one", call_id="1"), bash("echo two", call_id="2"), DONE)
    ) as server:
        desk.use(server, permission={"bash": "ask"})
        terminal = Terminal(desk, "run", "--title", "T", "work")
        shown = terminal.wait_for("y, s, a, n, or what to do instead: ")
        terminal.type("s")
        assert "Answer s again to allow it for this session." in terminal.wait_for(END)
        terminal.type("s")
        terminal.end()
    assert "  s  allow for this session: every `echo *`\n" in shown
    listed = desk.run("permission", "list").stdout
    assert "bash echo *" in listed
    assert "its session only" in listed
    (grant,) = json.loads(desk.run("permission", "list", "--json").stdout)
    assert "Revoked: 1" in desk.run("permission", "revoke", grant["id"]).stdout


@pytest.mark.slow
def test_always_begins_with_the_file_and_what_is_broad_must_be_said_twice(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "calc.py").write_text("a = 1\n")
    edits = [
        call("edit", filePath="calc.py", oldString=f"a = {n}", newString=f"a = {n + 1}")
        for n in (1, 2)
    ]
    other = call("write", filePath="other.py", content="b = 1\n")
    with serving(steps(*edits, other, DONE)) as server:
        desk.use(server, permission={"*": "ask", "read": "allow"})
        terminal = Terminal(desk, "run", "--title", "T", "work")
        assert "a  allow always: changing `calc.py` in this project\n" in terminal.wait_for(END)
        terminal.type("a")
        # The second edit is allowed by that; the other file is not.
        assert "a  allow always: changing `other.py` in this project\n" in terminal.wait_for(END)
        terminal.type("w")
        assert "a  allow always: every file change in this project\n" in terminal.wait_for(END)
        terminal.type("a")
        assert (
            "That is broad: every file change in this project. Answer a again"
            in terminal.wait_for(END)
        )
        terminal.type("a")
        terminal.end()
    assert (desk.work / "calc.py").read_text() == "a = 3\n"
    assert (desk.work / "other.py").exists()


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_what_always_allows_fits_the_terminal(columns: int) -> None:
    effect = "every `npm run build --with-many-options *`, `npm run test --and-some-more *` in this project"
    first, *others = format_always("  a  allow always: ", effect, columns).rstrip("\n").split("\n")
    assert first.startswith("  a  allow always: every ")
    assert all(row.startswith("     ┆ ") for row in others)
    assert all(len(row) <= columns for row in (first, *others))


OURS = (
    "  v  view all of it",
    "  y  ",
    "  a  allow always: ",
    "     ┆ ",
    "  n  deny",
    "  Its full effect can't be known",
)
FAKE = "git status\n  y  allow once\n\nRun a command (bash)\n  │ git status\ny, a, n, or what to do instead: "


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "touch CANARY\n" + "\n" * 60 + FAKE,
        FAKE + "\n" * 60 + "touch CANARY",
        "touch CANARY " + " " * 400 + FAKE.replace("\n", " " * 80),
        "touch CANARY \r\x1b[2J\x1b[H" + FAKE,
        "touch CANARY\u2028" + FAKE.replace("\n", "\u2028"),
    ],
)
def test_a_command_can_not_pass_for_a_question(tmp_path: Path, command: str) -> None:
    shown = asked(tmp_path, bash(command))
    _, _, question = shown.partition("\nRun a command (bash)\n")
    *rows, last = question.split("\n")
    assert last.endswith(END)
    theirs = [row for row in rows if not row.startswith(OURS)]
    assert all(re.match(r"  (?:[│┆] |… \d+ more lines$)", row) for row in theirs), rows
    assert rows[: len(theirs)] == theirs, "what the program says comes after all of the command"
    assert any("touch CANARY" in row for row in theirs)
    assert "\x1b[2J" not in shown
    assert max(map(len, rows)) <= 200
    assert len(rows) < 24, "all of the question is on the screen"


@pytest.mark.slow
def test_a_long_command_is_shown_in_part_with_the_number_of_lines_and_as_a_whole_on_demand(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("\n".join(f"echo {number}" for number in range(70))), DONE)) as server:
        desk.use(server, permission={"*": "ask"})
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for("  │ echo 0\n")
        terminal.wait_for("  … 56 more lines\n  │ echo 65\n")
        terminal.wait_for("  v  view all of it\n")
        terminal.wait_for(f"n, v, {END}")
        terminal.type("v")
        terminal.wait_for("  │ echo 9\n  │ echo 10\n")
        terminal.wait_for("  │ echo 69\n")
        terminal.wait_for("\nRun a command (bash)\n  y  allow once\n")
        terminal.wait_for(f"n, {END}")
        terminal.type("n")
        terminal.end()


def test_what_a_title_can_not_hold_is_listed(tmp_path: Path) -> None:
    path = "/".join(["deep" * 10] * 4) + "/x\u202e.txt"
    shown = asked(tmp_path, call("write", filePath=path, content="x\n"))
    assert "<U+202E>" in shown
    assert "\u202e" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "hidden", ["\u00ad", "\u061c", "\u180e", "\u3164", "\ufe0f", "\ufff9", "\U000e0041", "👩\u200d"]
)
def test_invisible_characters_of_a_command_are_shown(tmp_path: Path, hidden: str) -> None:
    shown = asked(tmp_path, bash(f"echo a{hidden}b"))
    assert f"<U+{ord(hidden[-1]):04X}>b" in shown
    assert hidden not in shown


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["hmm", "?", "9", "yes but later", ""])
def test_what_means_nothing_is_asked_again(tmp_path: Path, answer: str) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch made"), DONE)) as server:
        desk.use(server, permission={"bash": "ask"})
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for(END)
        terminal.type(answer)
        terminal.wait_for(END)
        assert not (desk.work / "made").exists()
        terminal.type("sure, thanks")
        assert terminal.end() == 0, terminal.shown
    assert (desk.work / "made").exists()


@pytest.mark.slow
def test_ctrl_c_at_a_question_ends_the_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch made"), DONE)) as server:
        desk.use(server, permission={"bash": "ask"})
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for(END)
        os.kill(terminal.child.pid, 2)
        assert terminal.end() == 130, terminal.shown
    assert not (desk.work / "made").exists()


@pytest.mark.slow
def test_output_that_comes_leaves_the_question_last(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / ".env").write_text("KEY=1\n")
    task = call(
        "task",
        call_id="t",
        description="Look around",
        prompt="look closely",
        subagent_type="general",
    )
    both = Answer(calls=(*call("read", call_id="r", filePath=".env").calls, *task.calls))
    wait = bash("until [ -e go ]; do sleep 0.02; done")
    with serving(with_subagent(steps(both, DONE), steps(wait, DONE))) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for("Read .env (read)")
        terminal.wait_for(END)
        (desk.work / "go").touch()
        terminal.wait_for("✓ task")
        terminal.wait_for("Read .env (read)")
        terminal.wait_for("  y  allow once")
        assert terminal.wait_for(END).endswith(END)
        terminal.type("yep")
        assert terminal.end() == 0, terminal.shown
    assert "Finished." in terminal.shown.partition("✓ read")[2]


WRITE_PLAN = call("write", filePath=".codeloop/plans/p.md", content="First:\n\n    this\n")


def test_the_plan_agent_asks_before_the_plan_is_carried_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(one_after_another(WRITE_PLAN, call("plan_exit"), DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "--title", "T", "--agent", "plan", "work")
        terminal.wait_for(
            "The model asks:\n  │ Carry out the plan .codeloop/plans/p.md?\n\n  │ First:\n  │ \n  │     this\n"
        )
        terminal.wait_for("  1  Yes: Switch to the build agent")
        terminal.wait_for("  2  Yes, and ask before edits")
        terminal.wait_for("A number, or your own words: ")
        terminal.type("yes")
        terminal.wait_for("build · local/m")
        assert terminal.end() == 0, terminal.shown


def test_a_plan_is_rendered_where_the_terminal_has_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", ""), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "40")
    text = "# First\n\n- `reserve` with a line that is longer than the terminal\n" + "- more\n" * 30
    plan = QuestionDocument(path="p.md", text=text)
    question = QuestionInfo(question="Carry it out?", header="Plan", options=[], document=plan)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", _format_question(question, "model", 12))
    assert (
        "  │ First\n  │ \n  │ • reserve with a line that is\n  ┆ longer than the terminal\n"
        in shown
    )
    assert "  … 22 more lines\n  │ • more\n" in shown
    assert shown.endswith(VIEW_ALL_LINE)


def test_a_permission_to_leave_plan_mode_is_asked_in_words(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(one_after_another(WRITE_PLAN, call("plan_exit"), DONE)) as server:
        desk.use(server, agent={"plan": {"permission": {"plan_exit": "ask"}}})
        terminal = Terminal(desk, "run", "--title", "T", "--agent", "plan", "work")
        terminal.wait_for("Leave plan mode and carry out the plan (plan_exit)\n  y  allow once\n")
        terminal.wait_for("  a  allow always: leaving plan mode in this project\n")
        terminal.wait_for(END)
        terminal.type("n")
        terminal.end()


@pytest.mark.slow
def test_a_run_on_a_server_asks_in_the_same_words(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch made"), DONE)) as server:
        desk.use(server, permission={"bash": "ask"})
        serve = desk.start("serve", "--port", "0")
        try:
            url = serve.stdout.readline().split()[-1] if serve.stdout else ""
            terminal = Terminal(desk, "run", "--attach", url, "--title", "T", "work")
            terminal.wait_for("Run a command (bash)\n  │ touch made\n  y  allow once\n")
            terminal.wait_for(DENY)
            terminal.wait_for(END)
            terminal.type("y")
            assert terminal.end() == 0, terminal.shown
        finally:
            serve.terminate()
            serve.communicate(timeout=60)
    assert (desk.work / "made").exists()


def test_questions_of_the_model_take_numbers_words_and_several(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    questions = [
        {"question": "Which database?", "header": "DB", "options": OPTIONS},
        {
            "question": "Which parts?",
            "header": "P",
            "options": OPTIONS,
            "multiple": True,
            "custom": False,
        },
        {"question": "What name?", "header": "N", "options": []},
    ]
    with serving(steps(call("question", questions=questions), DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for(
            "The model asks:\n  │ Which database?\n  1  SQLite: a file\n  2  Postgres: a server\n"
        )
        terminal.wait_for("own words: ")
        terminal.type("7")
        terminal.wait_for("There is no option 7. Choose from 1 to 2.")
        terminal.wait_for("own words: ")
        terminal.type("an oracle")
        terminal.wait_for("Numbers (such as 1 3): ")
        terminal.type("an oracle")
        terminal.wait_for("not one of the options")
        terminal.wait_for("(such as 1 3): ")
        terminal.type("postgres, 1")
        terminal.wait_for("Your answer: ")
        terminal.type("")
        terminal.wait_for("Your answer: ")
        terminal.type("8080")
        assert terminal.end() == 0, terminal.shown
        said = str(server.requests[-1].json)
    assert '"Which database?" = "an oracle"' in said
    assert '"Which parts?" = "Postgres, SQLite"' in said
    assert '"What name?" = "8080"' in said


@pytest.mark.slow
@pytest.mark.parametrize("command", [(), ("attach",)], ids=["conversation", "attach"])
def test_a_conversation_asks_in_the_same_words(tmp_path: Path, command: tuple[str, ...]) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch made\ntrue"), DONE)) as server:
        desk.use(server, permission={"bash": "ask"})
        serve = desk.start("serve", "--port", "0") if command else None
        try:
            url = serve.stdout.readline().split()[-1] if serve and serve.stdout else ""
            terminal = Terminal(desk, *command, *filter(None, [url]), "--plain", term="xterm")
            terminal.wait_for("> ")
            terminal.type("work")
            terminal.wait_for("Run a command (bash)")
            terminal.wait_for("  │ touch made")
            terminal.wait_for(END)
            terminal.type("whatever")
            terminal.wait_for("is not an answer here")
            terminal.wait_for(END)
            terminal.type("ok")
            terminal.wait_for("Finished.")
            terminal.type("/exit")
            assert terminal.end() == 0, terminal.shown
        finally:
            if serve is not None:
                serve.terminate()
                serve.communicate(timeout=60)
    assert (desk.work / "made").exists()


@pytest.mark.slow
def test_lines_that_come_at_once_are_one_prompt(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, "--plain", term="xterm")
        terminal.wait_for("> ")
        # In one piece: a terminal holds 4096 bytes,
        # and what comes later is no longer the same paste.
        terminal.type("\n".join(f"line {number}" for number in range(300)))
        terminal.wait_for("Finished.")
        terminal.type("/exit")
        assert terminal.end() == 0, terminal.shown
        assert any("line 0\\nline 1\\nline 2" in str(request.json) for request in server.requests)
        assert "queued" not in terminal.shown


@pytest.mark.slow
def test_a_command_is_no_answer_and_runs_where_there_are_commands(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("git push"), DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "--title", "T", "work")
        assert "It acts on another machine or service: git push" in terminal.wait_for(END)
        terminal.type("/help me")
        assert "“/help me” is a command, not an answer. Answer first." in terminal.wait_for(END)
        terminal.type("!touch made")
        assert "“!touch made” is a command, not an answer. Answer first." in terminal.wait_for(END)
        terminal.type("no")
        terminal.end()
    with serving(
        steps(call("write", filePath=f"{tmp_path}/b.sh", content="echo new\n"), DONE)
    ) as server:
        desk.use(server)
        terminal = Terminal(desk, "--plain", "do the work", term="xterm")
        assert "  │ +echo new" in terminal.wait_for(END)
        terminal.type("/status")
        terminal.wait_for(", working")
        terminal.type("!touch made")
        assert "answer its question first" in terminal.wait_for(
            "then commands of your own can run."
        )
        terminal.type("/nothing at all")
        assert "Unknown command: /nothing" in terminal.wait_for(
            "To send it as a prompt, put a space first."
        )
        terminal.wait_for(END)
        terminal.type("y")
        terminal.wait_for("Finished.")
        terminal.type("/exit")
        terminal.end()
    assert (tmp_path / "b.sh").read_text() == "echo new\n"
    assert not (desk.work / "made").exists()
