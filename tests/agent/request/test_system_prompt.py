"""What every request of a session begins with stays the same, whatever becomes of the project."""

import subprocess
from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import PROMPT, Prompt, TextPartInput
from codeloop.schema.api.session_requests import SESSION_FORK, ForkSession
from codeloop.schema.limits import FACTS_BYTES
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

DONE = ScriptedAnswer(text="Done.")


def environment(system: str) -> str:
    return system[system.index("<env>") : system.index("</env>")]


def make_project(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=work, check=True)
    (work / "Makefile").write_text("test:\n\ttrue\n")
    return work


def change(work: Path) -> None:
    """Change everything that the facts are made of."""
    (work / "new.py").touch()
    (work / "Makefile").write_text("lint:\n")
    (work / ".git" / "HEAD").write_text("ref: refs/heads/other\n")


async def test_the_facts_of_a_project_stay_those_of_the_session_s_beginning(tmp_path: Path) -> None:
    work = make_project(tmp_path)
    async with open_scripted_project(tmp_path, [DONE, DONE]) as it:
        await it.prompt("one")
        first = it.model.requests[0].system
        change(work)
        await it.prompt("two")
        assert it.model.requests[1].system == first
        session_id = it.session_id
    assert "Git: branch main\n" in environment(first)
    assert "Files here: Makefile\n" in environment(first)
    assert "Its own checks: test: make test" in environment(first)
    async with open_scripted_project(tmp_path, [DONE], session_id=session_id) as again:
        await again.prompt("three")
        assert again.model.requests[0].system == first


async def test_a_fork_begins_with_the_same_bytes_and_a_new_session_looks_again(
    tmp_path: Path,
) -> None:
    work = make_project(tmp_path)
    async with open_scripted_project(tmp_path, [DONE, DONE]) as it:
        await it.prompt("one")
        change(work)
        made = await it.client.call(SESSION_FORK, ForkSession(session_id=it.session_id))
        await it.client.call(PROMPT, Prompt(session_id=made.id, parts=[TextPartInput(text="two")]))
        one, two = it.model.requests
        assert two.system == one.system
        assert two.messages[: len(one.messages)] == one.messages
    async with open_scripted_project(tmp_path, [DONE]) as other:
        await other.prompt("one")
        assert "Git: branch other\n" in other.model.requests[0].system


async def test_a_subagent_is_told_what_its_parent_was(tmp_path: Path) -> None:
    make_project(tmp_path)
    task = make_call("task", description="look", prompt="look around", subagent_type="explore")
    answers = [
        make_answer(make_call("bash", command="touch new.py")),
        make_answer(task),
        DONE,
        DONE,
    ]
    async with open_scripted_project(tmp_path, answers) as it:
        await it.prompt("one")
        parent, _, child, _ = it.model.requests
    assert (tmp_path / "work" / "new.py").exists()
    assert environment(child.system) == environment(parent.system)


async def test_every_agent_is_told_whose_word_counts(tmp_path: Path) -> None:
    own = {"mine": {"prompt": "You are mine.", "mode": "primary"}}
    async with open_scripted_project(tmp_path, [DONE, DONE], agent=own) as it:
        await it.prompt("one")
        await it.prompt("two", agent="mine")
        assert it.model.requests[1].system.startswith("You are mine.")
        assert all(request.system.count("are data") == 1 for request in it.model.requests)


async def test_the_environment_takes_at_most_its_bytes_more(tmp_path: Path) -> None:
    work = make_project(tmp_path)
    for number in range(60):
        (work / f"{number:02}-a-long-name-of-a-file").touch()
    async with open_scripted_project(tmp_path, [DONE]) as it:
        await it.prompt("one")
        told = environment(it.model.requests[0].system)
    own = told[: told.index("Git:")]
    assert FACTS_BYTES.value - 60 < len(told.encode()) - len(own.encode()) <= FACTS_BYTES.value + 1
