"""What a step changed is recorded with it, so that it can be undone: through the real loop,
tools and files.
"""

from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import ABORT, PROMPT_ASYNC, Prompt, TextPartInput
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.api.session_undo import (
    SESSION_REVERT,
    SESSION_UNREVERT,
    RevertSession,
    UnrevertSession,
)
from codeloop.schema.part import PatchPart, StepFinishPart
from tests.support.scripted_project import (
    ScriptedProject,
    join_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)


def patches(it: ScriptedProject) -> list[PatchPart]:
    return [
        part for entry in it.view().entries for part in entry.parts if isinstance(part, PatchPart)
    ]


def prompt_of(it: ScriptedProject) -> str:
    return it.view().entries[0].info.id


def made(tmp_path: Path, **files: str) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    for name, text in files.items():
        (work / f"{name}.txt").write_text(text)
    return work


async def test_a_turn_is_undone_and_redone_with_its_files(tmp_path: Path) -> None:
    work = made(tmp_path, a="one\n", b="two\n")
    steps = [
        make_answer(make_call("read", filePath="a.txt")),
        make_answer(
            make_call("edit", "e", filePath="a.txt", oldString="one", newString="1"),
            make_call("bash", "b", command="rm b.txt"),
        ),
        ScriptedAnswer(text="Done."),
    ]
    async with open_scripted_project(tmp_path, steps) as it:
        await it.prompt()
        assert (work / "a.txt").read_text() == "1\n"
        (patch,) = patches(it)
        assert set(patch.files) == {str(work / "a.txt"), str(work / "b.txt")}
        undone = await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=prompt_of(it))
        )
        assert undone.outcome is not None
        assert undone.outcome.conflicts == []
        assert ((work / "a.txt").read_text(), (work / "b.txt").read_text()) == ("one\n", "two\n")
        await it.client.call(SESSION_UNREVERT, UnrevertSession(session_id=it.session_id))
        assert (work / "a.txt").read_text() == "1\n"
        assert not (work / "b.txt").exists()


async def test_a_prompt_after_an_undo_makes_it_final(tmp_path: Path) -> None:
    work = made(tmp_path)
    steps = [
        make_answer(make_call("write", filePath="n.txt", content="new")),
        ScriptedAnswer(text="Done."),
        ScriptedAnswer(text="Again."),
    ]
    async with open_scripted_project(tmp_path, steps) as it:
        await it.prompt("one")
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=prompt_of(it))
        )
        assert not (work / "n.txt").exists()
        assert join_texts((await it.prompt("two")).parts) == "Again."
        assert len(it.view().entries) == 2
        assert it.view().session.revert is None
        assert len(it.model.requests[-1].messages) == 1


async def test_what_an_aborted_step_changed_is_recorded(tmp_path: Path) -> None:
    work = made(tmp_path, a="one\n")
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="echo x > a.txt; touch begun; sleep 30"))]
    ) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        await wait_until(lambda: (work / "begun").exists())
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        assert str(work / "a.txt") in patches(it)[0].files
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=prompt_of(it))
        )
        assert (work / "a.txt").read_text() == "one\n"


async def test_reading_records_nothing(tmp_path: Path) -> None:
    made(tmp_path, a="one\n")
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("read", filePath="a.txt")), ScriptedAnswer(text="Seen.")]
    ) as it:
        await it.prompt()
        assert patches(it) == []
        finishes = [p for e in it.view().entries for p in e.parts if isinstance(p, StepFinishPart)]
        assert [finish.snapshot for finish in finishes] == [None, None]


async def test_ignored_files_are_kept_before_a_destructive_command(tmp_path: Path) -> None:
    work = made(tmp_path, a="one\n")
    (work / ".gitignore").write_text("*.log\n")
    (work / "x.log").write_text("precious\n")
    async with open_scripted_project(
        tmp_path,
        [make_answer(make_call("bash", command="rm -rf x.log")), ScriptedAnswer(text="Gone.")],
    ) as it:
        await it.prompt()
        assert not (work / "x.log").exists()
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=prompt_of(it))
        )
        assert (work / "x.log").read_text() == "precious\n"


async def test_without_snapshots_nothing_is_recorded(tmp_path: Path) -> None:
    made(tmp_path)
    steps = [
        make_answer(make_call("write", filePath="n.txt", content="new")),
        ScriptedAnswer(text="Done."),
    ]
    async with open_scripted_project(tmp_path, steps, snapshot=False) as it:
        await it.prompt()
        assert patches(it) == []
