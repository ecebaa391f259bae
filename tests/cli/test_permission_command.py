"""Profiles, what is always allowed, and the log of decisions: on the real program."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer

ASK = {"bash": "ask"}
DONE = Answer(text="Finished.")
WRITE = call("write", filePath="w.txt", content="x", call_id="w")


def run(desk: Desk, *answers: Answer, arguments: tuple[str, ...] = (), **settings: Any) -> int:
    """Run a task whose steps are these answers; return the exit code."""
    with serving(steps(*answers)) as server:
        desk.use(server, **settings)
        return desk.run("run", "--title", "T", *arguments, "work").returncode


def always(desk: Desk, *arguments: str) -> None:
    """Answer the question about `touch one` with always."""
    with serving(steps(bash("touch one"), DONE)) as server:
        desk.use(server, permission=ASK)
        terminal = Terminal(desk, "run", "--title", "T", *arguments, "work")
        terminal.wait_for("always: every `touch *` in this project")
        terminal.type("a")
        terminal.wait_for("Answer a again")
        terminal.type("a")
        assert terminal.end() == 0, terminal.shown


@pytest.mark.slow
def test_always_is_remembered_listed_and_revoked(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    always(desk)
    assert run(desk, bash("touch two"), DONE, permission=ASK) == 0
    (grant,) = json.loads(desk.run("permission", "list", "--json").stdout)
    assert (grant["directory"], grant["permission"], grant["patterns"]) == (
        str(desk.work),
        "bash",
        ["touch *"],
    )
    listed = desk.run("permission", "list").stdout
    assert all(
        text in listed for text in (grant["id"], "bash touch *", str(desk.work), grant["sessionID"])
    )
    assert desk.run("session", "delete", "--yes", grant["sessionID"]).returncode == 0
    assert grant["id"] in desk.run("permission", "list").stdout, "it outlives the session"
    wrong = desk.run(
        "permission", "revoke", grant["id"][:-1] + ("y" if grant["id"].endswith("x") else "x")
    )
    assert (wrong.returncode, grant["id"] in wrong.stderr) == (2, True)
    assert desk.run("permission", "revoke", grant["id"]).stdout == "Revoked: 1\n"
    assert run(desk, bash("touch three"), DONE, permission=ASK) == 5
    assert desk.run("permission", "list").stdout.startswith(
        "Nothing is always allowed in this project."
    )
    assert desk.run("permission", "revoke").returncode == 2
    assert desk.run("permission", "revoke", "--all").stdout == "Revoked: 0\n"
    assert sorted(path.name for path in desk.work.iterdir() if path.is_file()) == ["one", "two"]


@pytest.mark.slow
def test_always_does_not_hold_in_another_directory_of_the_project(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    other = desk.work / "sub"
    other.mkdir()
    always(desk)
    assert run(desk, bash("touch two"), DONE, arguments=("--dir", str(other)), permission=ASK) == 5
    assert not (other / "two").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["touch two > log", "touch two && rm -f one", "env touch two", 'touch "$x"']
)
def test_always_carries_no_write_no_other_command_no_wrapper_and_nothing_uncertain(
    tmp_path: Path, line: str
) -> None:
    desk = Desk(tmp_path)
    always(desk)
    assert run(desk, bash(line), DONE, permission=ASK) == 5
    assert sorted(path.name for path in desk.work.iterdir() if path.is_file()) == ["one"]


@pytest.mark.slow
def test_always_does_not_hold_where_a_command_runs_elsewhere(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "sub").mkdir()
    always(desk)
    assert run(desk, call("bash", command="touch two", workdir="sub"), DONE, permission=ASK) == 5
    assert not list((desk.work / "sub").iterdir())


@pytest.mark.slow
def test_the_log_says_what_was_decided_by_which_rule_written_where(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    work = [call("read", filePath="calc.py"), bash("touch one", "b"), bash("rm one", "c"), DONE]
    (desk.work / "calc.py").write_text("a = 1\n")
    with serving(steps(*work)) as server:
        desk.use(server, permission={"bash": {"*": "ask", "rm *": "deny"}})
        assert desk.run("run", "--title", "T", "--auto", "work").returncode == 0
    logged = json.loads(desk.run("permission", "log", "--json").stdout)
    found = [each for each in logged if each["permission"] != "edit"]
    assert [(each["permission"], each["action"], each["by"]) for each in found] == [
        ("read", "allow", "rule"),
        ("bash", "allow", "--auto"),
        ("bash", "deny", "rule"),
    ]
    assert found[0]["origin"] == "profile auto"
    assert found[1]["rule"] == {"permission": "bash", "pattern": "*", "action": "ask"}
    assert "codeloop.json" in found[2]["origin"]
    assert all(each["call"]["callID"] for each in found)
    assert len({each["sessionID"] for each in found}) == 1
    denied = desk.run("permission", "log", "--denied").stdout
    assert "deny" in denied
    assert "rm one" in denied
    assert "bash rm *: deny" in denied
    assert "touch one" not in denied
    assert len(json.loads(desk.run("permission", "log", "-n", "1", "--json").stdout)) == 1


@pytest.mark.parametrize(
    ("profile", "code", "written"),
    [
        ("ask", 5, False),
        ("auto", 0, True),
        ("plan", 0, False),
        ("read-only", 0, False),
        ("yolo", 0, True),
    ],
)
def test_a_profile_decides_about_edits(
    tmp_path: Path, profile: str, code: int, *, written: bool
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(WRITE, DONE)) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "--profile", profile, "work").returncode == code
    assert (desk.work / "w.txt").exists() == written


@pytest.mark.slow
def test_plan_runs_only_what_reads_whatever_is_allowed_and_the_session_keeps_it(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    allow = {"bash": "allow", "edit": "allow"}
    assert (
        run(
            desk,
            bash("touch one"),
            bash("ls -a", "b"),
            DONE,
            arguments=("--profile", "plan"),
            permission=allow,
        )
        == 0
    )
    with serving(steps(bash("touch two"), WRITE, DONE)) as server:
        desk.use(server, permission=allow)
        assert desk.run("run", "--continue", "go on").returncode == 0
    found = json.loads(desk.run("permission", "log", "--json").stdout)
    assert [(each["permission"], each["action"]) for each in found] == [
        ("bash", "deny"),
        ("bash", "allow"),
        ("bash", "deny"),
        ("edit", "deny"),
    ]
    assert {path.name for path in desk.work.iterdir()} <= {".git"}


@pytest.mark.slow
def test_the_agent_plan_runs_only_what_reads_unless_a_rule_of_its_own_allows_more(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    plan = ("--agent", "plan")
    assert run(desk, bash("touch one"), DONE, arguments=plan, permission={"bash": "allow"}) == 0
    assert not (desk.work / "one").exists()
    own = {"plan": {"permission": {"bash": {"touch *": "allow"}, "edit": "allow"}}}
    assert (
        run(desk, bash("touch one"), DONE, arguments=plan, permission={"bash": "allow"}, agent=own)
        == 0
    )
    assert (desk.work / "one").exists()


@pytest.mark.slow
def test_yolo_asks_nothing_and_keeps_what_is_denied(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch one"), bash("rm one", "b"), DONE)) as server:
        desk.use(server, permission={"bash": {"*": "ask", "rm *": "deny"}})
        done = desk.run("run", "--format", "json", "--title", "T", "--profile", "yolo", "work")
    assert result(done)["exitCode"] == 0
    assert (desk.work / "one").exists()
    logged = json.loads(desk.run("permission", "log", "--json").stdout)
    found = [(each["action"], each["by"]) for each in logged if each["permission"] == "bash"]
    assert found == [("allow", "profile yolo"), ("deny", "rule")]


@pytest.mark.slow
def test_an_untrusted_project_chooses_only_a_stricter_profile(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for chosen, code in (("yolo", 5), ("auto", 5), ("ask", 5), ("plan", 5)):
        (desk.work / "codeloop.json").write_text(json.dumps({"profile": chosen}))
        with serving(steps(WRITE, DONE)) as server:
            desk.use(server, profile="ask")
            assert desk.run("run", "--title", "T", "work").returncode == code
    (desk.work / "codeloop.json").write_text(json.dumps({"profile": "ask"}))
    with serving(steps(WRITE, DONE)) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "work").returncode == 5
    assert not (desk.work / "w.txt").exists()


def test_the_profile_is_shown_and_set_in_a_conversation(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(WRITE, DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk)
        for typed, shown in (
            ("/profile", "profile as configured"),
            ("/profile askk", "There is no profile askk. Did you mean `ask`?"),
            ("/profile ask", "profile ask holds"),
            ("work", "Create w.txt (write)"),
        ):
            terminal.type(typed)
            terminal.wait_for(shown)
        terminal.type("n")
        terminal.type("/profile")
        terminal.wait_for("profile ask;")
        terminal.type("/exit")
        terminal.end()
    assert not (desk.work / "w.txt").exists()


def test_an_imported_session_brings_no_profile(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert run(desk, DONE, arguments=("--profile", "yolo")) == 0
    exported = json.loads(desk.run("export").stdout)
    assert exported["info"]["metadata"] == {"profile": "yolo"}
    (tmp_path / "s.json").write_text(json.dumps(exported))
    done = desk.run("import", str(tmp_path / "s.json"))
    assert "The profile of the session was left out." in done.stdout + done.stderr
