"""What `codeloop debug permission` says is what happens, and it changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, serving, steps
from tests.support.answers import Answer

RULES: dict[str, Any] = {"bash": {"*": "ask", "echo *": "allow", "rm *": "deny"}}


def explained(desk: Desk, *arguments: str, permission: str = "bash") -> dict[str, Any]:
    """Return what is said of the need of this permission."""
    done = desk.run("debug", "permission", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    (found,) = [
        need for need in json.loads(done.stdout)["needs"] if need["permission"] == permission
    ]
    return found


@pytest.mark.slow
def test_it_names_the_rule_its_place_and_what_always_would_remember(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(permission=RULES)
    denied = explained(desk, "rm x")
    assert (denied["action"], denied["rule"]["pattern"]) == ("deny", "rm *")
    assert f"{desk.home / 'config' / 'codeloop.json'}:1:" in denied["origin"]
    asked = explained(desk, "make all")
    assert (asked["action"], asked["always"]) == ("ask", ["make all *"])
    shown = desk.run("debug", "permission", "make $x").stdout
    assert "profile auto, agent build" in shown
    assert "meaning not certain: " in shown
    assert "always: not offered" in shown


@pytest.mark.parametrize(
    ("arguments", "permission", "action"),
    [
        (("--read", "a.py"), "read", "allow"),
        (("--read", ".env"), "read", "ask"),
        (("--edit", "a.py"), "edit", "allow"),
        (("--edit", "a.py", "--profile", "ask"), "edit", "ask"),
        (("--edit", "a.py", "--profile", "yolo"), "edit", "allow"),
        (("--edit", "a.py", "--agent", "plan"), "edit", "deny"),
        (("--edit", ".git/hooks/x"), "edit", "ask"),
        (("--url", "https://example.com/", "--profile", "ask"), "webfetch", "ask"),
        (("touch x", "--profile", "plan"), "bash", "deny"),
    ],
)
def test_files_pages_agents_and_profiles(
    tmp_path: Path, arguments: tuple[str, ...], permission: str, action: str
) -> None:
    desk = Desk(tmp_path)
    desk.configure()
    (desk.work / ".env").write_text("KEY=1\n")
    assert explained(desk, *arguments, permission=permission)["action"] == action
    assert not (desk.work / "a.py").exists()
    assert not (desk.work / "x").exists()


@pytest.mark.slow
def test_it_says_what_a_run_then_does_and_leaves_no_trace(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(permission=RULES)
    said = {line: explained(desk, line)["action"] for line in ("echo a", "touch a", "rm a")}
    assert json.loads(desk.run("permission", "log", "--json").stdout) == []
    assert "ses_" not in desk.run("session", "list").stdout
    for line, action in said.items():
        with serving(steps(bash(line), Answer(text="Done."))) as server:
            desk.use(server, permission=RULES)
            assert desk.run("run", "--title", "T", "work").returncode == (
                5 if action == "ask" else 0
            )
    log = [
        each
        for each in json.loads(desk.run("permission", "log", "--json").stdout)
        if each["permission"] == "bash"
    ]
    assert [each["action"] for each in log] == [
        "deny" if said[x] != "allow" else "allow" for x in said
    ]


@pytest.mark.slow
def test_it_says_what_the_sandbox_would_allow(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.git("init", "-q")
    desk.configure(sandbox={"hidden": ["~/customers"], "network": "off"})
    (tmp_path / "customers").mkdir()
    (tmp_path / "customers/list").touch()
    (desk.work / ".env").write_text("KEY=1\n")
    line = "cat .env ~/customers/list > ~/out; cp a.py b.py; echo x >> .git/hooks/y"
    said = json.loads(desk.run("debug", "permission", "--json", line).stdout)["sandbox"]
    if said["backend"] != "namespaces":
        pytest.skip("no sandbox that hides files of a project can be had here")
    fates = {(each["access"], each["path"]): each["fate"] for each in said["touches"]}
    assert {path: fate for path, fate in fates.items() if fate != "free"} == {
        ("write", f"{tmp_path}/out"): "opened",
        ("write", f"{desk.work}/.git/hooks/y"): "opened",
        ("read", f"{desk.work}/.env"): "opened",
        ("read", f"{tmp_path}/customers/list"): "blocked",
    }
    assert fates["write", f"{desk.work}/b.py"] == "free"
    assert said["network"] == "off"
    assert str(desk.work) in said["writable"]
    assert not (tmp_path / "out").exists()
    shown = desk.run("debug", "permission", "--verbose", line).stdout
    assert f"read of {tmp_path}/customers/list: hidden, blocked" in shown
    assert (
        f"write of {tmp_path}/out: outside the project, opened for this command once it is allowed"
        in shown
    )
    desk.configure(sandbox="off")
    assert "no sandbox: it is turned off" in desk.run("debug", "permission", "ls").stdout


@pytest.mark.slow
def test_it_says_which_denies_the_kernel_keeps(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(
        permission={
            "read": {"notes/*": "deny"},
            "edit": {"notes/*": "deny"},
            "bash": {"rm *": "deny"},
        }
    )
    (desk.work / "notes").mkdir()
    (desk.work / "notes/a").touch()
    read = desk.run("debug", "permission", "--read", "notes/a").stdout
    assert (
        "enforced by our tools; in the sandbox, unless it is Landlock alone, also the kernel"
        in read
    )
    edit = desk.run("debug", "permission", "--edit", "notes/a").stdout
    assert "enforced by our tools; in the sandbox also the kernel" in edit
    assert "enforced by our tools only" in desk.run("debug", "permission", "rm x").stdout
    assert "enforced by" not in desk.run("debug", "permission", "ls").stdout


@pytest.mark.slow
def test_a_denied_path_that_is_only_known_when_it_runs_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(permission={"edit": "deny"})
    done = desk.run("debug", "permission", "--verbose", "touch $x")
    assert (done.returncode, done.stderr) == (0, "")
    assert "what is only known when it runs" in done.stdout
    assert "enforced by our tools only" in done.stdout


def test_one_thing_has_to_be_asked_about(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.run("debug", "permission").returncode == 2
    assert desk.run("debug", "permission", "ls", "--read", "x").returncode == 2
