"""A session in a work tree, by the real program with `--auto`: what it can do to the
other trees of the repository.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, events, serving, steps
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest
from tests.support.sandbox_support import has_sandbox


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.git("init", "-q", "-b", "main")
    (desk.work / "calc.py").write_text("one\n")
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "first")
    return desk


def run_in_tree(desk: Desk, *calls: Answer, **settings: Any) -> list[str]:
    """Have the model make calls in a work tree, with --auto; return what it was told."""
    with serving(steps(*calls, Answer(text="Done."))) as server:
        desk.use(server, **settings)
        done = desk.run("run", "--auto", "--worktree", "one", "--format", "json", "go")
    parts = [event["part"] for event in events(done.stdout) if event["type"] == "tool_use"]
    assert len(parts) == len(calls), done.stderr
    return [part["state"].get("output") or part["state"].get("error") for part in parts]


def look(folder: Path) -> dict[str, bytes]:
    """Return the files of a work tree, and what decides about its git: everything that
    a session must leave alone.
    """
    paths = [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] != ".git"
    ]
    paths += [folder / ".git" / name for name in ("HEAD", "index", "config")]
    paths += (folder / ".git" / "hooks").glob("*")
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def list_ways(main: Path) -> list[Answer]:
    """Return calls that would change a work tree, each in another way."""
    file, new = str(main / "calc.py"), str(main / "new.py")
    patch = f"*** Begin Patch\n*** Add File: {new}\n+x\n*** Update File: {file}\n@@\n-one\n+two\n*** End Patch"
    batch = [{"tool": "write", "parameters": {"filePath": new, "content": "x\n"}}]
    answers = [
        call("write", filePath=new, content="x\n"),
        call("write", filePath=str(main / ".git/hooks/post-commit"), content="x\n"),
        call("write", filePath=str(main / ".git/config"), content="x\n"),
        call("edit", filePath=file, oldString="one", newString="two"),
        call("multiedit", filePath=file, edits=[{"oldString": "one", "newString": "two"}]),
        call("batch", tool_calls=batch),
        call("apply_patch", patchText=patch),
        call(
            "bash",
            command="touch new.py && python3 -c \"open('new2.py', 'w')\"",
            workdir=str(main),
            description="x",
        ),
    ]
    lines = [
        f"echo x > {new}",
        f"cp calc.py {new}",
        f"rm -f {file}",
        f"mv {file} moved.py",
        f"ln -s {main} away && echo x > away/new.py",
        f"cp -r . {main}/copy",
        f"cd {main} && echo x | tee new.py",
        f"git -C {main} branch evil",
        f"git -C {main} commit -q --allow-empty -m evil",
        f"git -C {main} config core.hooksPath evil",
        f"git --git-dir={main}/.git --work-tree={main} checkout -f HEAD~0",
        f"git --git-dir={main}/.git branch evil2",
        f"make -C {main}",
        f"cd {main} && python3 -c \"open('new.py', 'w')\"",
        f"env -C {main} touch new.py",
    ]
    answers += [bash(line) for line in lines]
    return [
        *answers,
        *(
            call("bash", command=line, outside="x", description="x")
            for line in (lines[0], lines[7])
        ),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_no_tool_changes_the_parent_or_another_tree_whatever_auto_answers(
    desk: Desk, sandbox: str
) -> None:
    if sandbox == "auto" and not has_sandbox():
        pytest.skip("no sandbox can be had here")
    made = json.loads(desk.run("worktree", "create", "two", "--json").stdout)
    other = Path(made["directory"])
    before, branches = look(desk.work), desk.git("branch")
    before |= look(other)
    ways = [*list_ways(desk.work), *list_ways(other)]
    if sandbox == "auto":
        # No program can be kept from it outside of the sandbox,
        # and the line does not say what it does.
        ways.append(call("bash", command="python3 -c 'x = 1'", outside="x", description="x"))
    told = run_in_tree(desk, *ways, sandbox=sandbox)
    told_otherwise = ("--auto does not let", "blocked: write to") if sandbox == "auto" else ()
    after = look(desk.work) | look(other)
    assert {path for path in {*after, *before} if after.get(path) != before.get(path)} == set()
    assert set(desk.git("branch").split()) - set(branches.split()) == {"codeloop/one"}
    for way, text in zip(ways, told, strict=True):
        # The kernel keeps what a line does only as it runs,
        # where there is a sandbox: "blocked: write to ...".
        assert any(each in text for each in ("changes nothing in another one", *told_otherwise)), (
            way,
            text,
        )


@pytest.mark.slow
def test_the_parent_can_be_read_and_branches_be_made(desk: Desk) -> None:
    (desk.work / "notes.txt").write_text("not tracked\n")
    told = run_in_tree(
        desk,
        call("read", filePath=str(desk.work / "notes.txt")),
        bash(f"cat {desk.work}/notes.txt"),
        bash(f"git -C {desk.work} status --short"),
        bash("git branch side && git branch --show-current"),
        sandbox="off",
    )
    assert all("not tracked" in text for text in told[:2]), told
    assert ("notes.txt" in told[2], told[3]) == (True, "codeloop/one\n"), told
    assert "side" in desk.git("branch").split()


@pytest.mark.slow
def test_a_subagent_in_a_tree_changes_nothing_in_the_parent(desk: Desk) -> None:
    file = desk.work / "calc.py"

    def answer(received: ReceivedRequest) -> Answer:
        messages = received.json.get("messages", [])
        if b'"tools"' not in received.body:
            return Answer(text="A title")
        if messages[-1]["role"] == "tool":
            return Answer(text="Done.")
        if "overwrite it" in json.dumps(messages[-1]):
            return call("write", filePath=str(file), content="two\n")
        return call("task", description="x", prompt="overwrite it", subagent_type="general")

    with serving(answer) as server:
        desk.use(server)
        done = desk.run("run", "--auto", "--worktree", "one", "go")
        told = [
            received.json["messages"][-1]
            for received in server.requests
            if b'"tools"' in received.body
        ]
    assert done.returncode == 0, done.stderr
    assert "changes nothing in another one" in json.dumps(told)
    assert file.read_text() == "one\n"


@pytest.mark.slow
def test_a_tree_inside_of_the_own_one_is_another_one(desk: Desk) -> None:
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        outer = Path(
            json.loads(desk.run("worktree", "create", "one", "--json").stdout)["directory"]
        )
    desk.git("worktree", "add", "-q", str(outer / "inner"))
    before = look(outer / "inner")
    program = "import pathlib; pathlib.Path('inner/calc.py').write_text('two')"
    lines = (
        ["echo x > inner/new.py", f'python3 -c "{program}"']
        if has_sandbox()
        else ["echo x > inner/new.py"]
    )
    run_in_tree(desk, call("write", filePath="inner/calc.py", content="two\n"), *map(bash, lines))
    assert look(outer / "inner") == before
