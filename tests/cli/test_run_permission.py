"""Permission from the command line: asked in a terminal, refused without one,
and what the flags and rules change.
"""

import json
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, call, events, result, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer

DONE = Answer(text="Finished.")
ASK = {"bash": "ask"}


def told(body: bytes) -> str:
    """What the last request told the model of its calls."""
    return "\n".join(
        str(each["content"]) for each in json.loads(body)["messages"] if each["role"] == "tool"
    )


@pytest.mark.slow
def test_yes_once_always_and_no_with_words(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    work = [bash(f"mkdir {word}", f"c{word}") for word in ("one", "two", "three")]
    with serving(
        steps(*work, call("write", filePath="w.txt", content="x", call_id="w"), DONE)
    ) as server:
        desk.use(server, permission={"bash": "ask", "edit": "ask"})
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for("mkdir one")
        terminal.wait_for("instead: ")
        terminal.type("y")
        terminal.wait_for("mkdir two")
        terminal.wait_for("instead: ")
        terminal.type("a")
        terminal.wait_for("Answer a again")
        terminal.type("a")
        terminal.wait_for("Run a command that may change three")
        terminal.wait_for("instead: ")
        terminal.type("y")
        terminal.wait_for("Create w.txt (write)")
        terminal.wait_for("instead: ")
        terminal.type("use another name")
        assert terminal.end() == 0, terminal.shown
        last = told(server.requests[-1].body)
    made = {path.name for path in desk.work.iterdir() if path.name != ".git"}
    assert made == {"one", "two", "three"}, "always is for the command, not for its write"
    assert not (desk.work / "w.txt").exists()
    assert "use another name" in last
    assert "+x" in terminal.shown, "the change is shown before it is allowed"


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["n", "\x04"])
def test_no_ends_the_turn_with_5(tmp_path: Path, answer: str) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo one >> log"), DONE)) as server:
        desk.use(server, permission=ASK)
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for("instead: ")
        terminal.type(answer)
        assert terminal.end() == 5, terminal.shown
        assert not (desk.work / "log").exists()
        server.answers = [DONE]
        assert desk.run("run", "-c", "go on").returncode == 0


@pytest.mark.slow
def test_an_unread_answer_and_an_empty_line_ask_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo one >> log"), DONE)) as server:
        desk.use(server, permission=ASK)
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.wait_for("instead: ")
        terminal.type("")
        terminal.wait_for("instead: ")
        terminal.type("YES")
        assert terminal.end() == 0, terminal.shown
    assert (desk.work / "log").read_text() == "one\n"


@pytest.mark.slow
def test_without_a_terminal_it_is_refused_told_and_5(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo one >> log"), DONE)) as server:
        desk.use(server, permission=ASK)
        done = desk.run("run", "--format", "json", "work")
        assert "Nobody is there" in told(server.requests[-1].body)
        text = desk.run("run", "work")
    ended = result(done)
    assert (ended["exitCode"], ended["text"]) == (5, "Finished.")
    assert [each["tool"] for each in ended["denied"]] == ["bash"]
    assert "--auto" in ended["message"]
    assert text.returncode == 5
    assert "Denied" in text.stderr
    assert not (desk.work / "log").exists()


@pytest.mark.slow
def test_auto_allows_what_is_asked_and_not_what_is_denied(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    answers = (
        bash("echo one >> log"),
        call("write", call_id="w", filePath="no.txt", content="x"),
        DONE,
    )
    with serving(steps(*answers)) as server:
        desk.use(server, permission={"bash": "ask", "edit": {"no.txt": "deny"}})
        done = desk.run("run", "--format", "json", "--auto", "work")
    assert (desk.work / "log").read_text() == "one\n"
    assert not (desk.work / "no.txt").exists()
    assert [each["tool"] for each in result(done)["denied"]] == ["write"]
    assert result(done)["exitCode"] in {0, 5}


def test_env_files_links_and_neighbours_are_asked_about_by_their_real_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "work-evil").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("TOP")
    (tmp_path / "work-evil" / "secret.txt").write_text("TOP")
    (desk.work / ".env").write_text("TOP=1")
    (desk.work / "link.txt").symlink_to("../outside/secret.txt")
    (desk.work / "chain").symlink_to(desk.work / "link.txt")
    (desk.work / "folder").symlink_to(tmp_path / "outside")
    (desk.work / "self").symlink_to("/proc/self/root")
    names = [
        ".env", "link.txt", "chain", "folder/secret.txt", f"self{tmp_path}/outside/secret.txt",
        "../work-evil/secret.txt", f"{desk.work}//../outside/secret.txt",
    ]  # fmt: skip
    reads = tuple(
        each
        for at, name in enumerate(names)
        for each in call("read", call_id=f"c{at}", filePath=name).calls
    )
    writes = call("write", call_id="w", filePath="folder/new.txt", content="x").calls
    with serving(steps(Answer(calls=(*reads, *writes)), DONE)) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "work")
    states = [line["part"]["state"] for line in events(done.stdout) if line["type"] == "tool_use"]
    assert len(states) == len(names) + 1
    assert [state["status"] for state in states] == ["error"] * len(states), states
    assert "TOP" not in json.dumps(states)
    assert not (tmp_path / "outside" / "new.txt").exists()
    assert result(done)["exitCode"] == 5
    assert str(tmp_path / "outside") in done.stderr


@pytest.mark.slow
def test_what_is_typed_before_a_question_is_shown_does_not_answer_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(bash("echo one >> log", "c1"), bash("echo two >> log", "c2"), DONE)
    ) as server:
        desk.use(server, permission=ASK)
        terminal = Terminal(desk, "run", "--title", "T", "work")
        terminal.type("y")
        terminal.wait_for("instead: ")
        terminal.type("y\ny")
        terminal.wait_for("instead: ")
        terminal.type("n")
        assert terminal.end() == 5, terminal.shown
    assert (desk.work / "log").read_text() == "one\n"


@pytest.mark.parametrize("agent", ["build", "plan"])
@pytest.mark.parametrize("is_attended", [True, False], ids=["terminal", "pipe"])
def test_answering_every_question_changes_no_tool_that_is_offered(
    tmp_path: Path, agent: str, is_attended: bool
) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(text="Done.")]) as server:
        desk.use(server)
        for auto in ((), ("--auto",)):
            command = ("run", *auto, "--agent", agent, "--title", "T", "work")
            ended = Terminal(desk, *command).end() if is_attended else desk.run(*command).returncode
            assert ended == 0
    plain, auto = (request.json["tools"] for request in server.requests)
    assert plain == auto
    assert ("question" in {tool["function"]["name"] for tool in plain}) is is_attended


@pytest.mark.slow
def test_the_model_can_not_lift_its_own_rules_nor_read_what_another_directory_printed(
    tmp_path: Path,
) -> None:
    other, desk = Desk(tmp_path / "other"), Desk(tmp_path)
    other.folder.mkdir()
    rules = {
        "*": "allow",
        "edit": "allow",
        "read": "allow",
        "bash": "allow",
        "external_directory": "ask",
    }
    with serving(steps(bash("seq 100000"), DONE)) as server:
        desk.use(server, permission=rules)
        assert (
            Desk(tmp_path / "other", {"CODELOOP_HOME": str(desk.home)})
            .run("run", "work")
            .returncode
            == 0
        )
    (printed,) = desk.home.rglob("tool_*")
    tries = (
        call("write", call_id="w", filePath=".codeloop/codeloop.json", content="{}"),
        bash("mkdir -p .codeloop && echo {} > .codeloop/codeloop.json", "b"),
        call("read", call_id="r", filePath=str(printed)),
        bash(f"head -c 20 {printed}", "c"),
    )
    for each in tries:
        with serving(steps(each, DONE)) as server:
            desk.use(server, permission=rules)
            done = desk.run("run", "--format", "json", "work")
        assert result(done)["exitCode"] == 5, done.stdout
    assert not (desk.work / ".codeloop").exists()


@pytest.mark.slow
def test_our_own_folders_are_no_part_of_a_work_tree_that_they_were_put_into(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    inside = desk.work / "state"
    answers = steps(
        call("write", filePath="state/config/agent/a.md", content="x\n"),
        call("bash", command="echo x > state/data/x"),
        call("write", filePath="fine", content="x\n"),
        Answer(text="Done."),
    )
    with serving(answers) as server:
        desk.use(server, permission={"edit": "allow", "bash": "allow"})
        desk.home.rename(inside)
        assert desk.run("run", "--title", "T", "work", CODELOOP_HOME=str(inside)).returncode == 5
    assert (desk.work / "fine").exists()
    assert not (inside / "config" / "agent").exists()
    assert not (inside / "data" / "x").exists()
