"""Files that somebody else changed since they were read are named to the model, once,
at its next step.
"""

import os
from pathlib import Path

from codeloop.model.chat import ModelRequest, TextPiece, UserModelMessage
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.part import TextPart
from tests.support.scripted_project import ScriptedProject, open_scripted_project

DONE = ScriptedAnswer(text="Done.")
LINE = "<system-reminder>Changed since you read them, not by you: {}. Read again what you need.</system-reminder>"


def answer(*calls: ScriptedCall) -> ScriptedAnswer:
    return ScriptedAnswer(calls=calls)


def read(name: str) -> ScriptedCall:
    return ScriptedCall("read", {"filePath": name})


def bash(command: str) -> ScriptedCall:
    return ScriptedCall("bash", {"command": command, "description": "Runs it"})


def told(request: ModelRequest) -> list[str]:
    pieces = (
        piece
        for turn in request.messages
        if isinstance(turn, UserModelMessage)
        for piece in turn.content
    )
    return [
        piece.text
        for piece in pieces
        if isinstance(piece, TextPiece) and "Changed since" in piece.text
    ]


def requests(it: ScriptedProject) -> list[ModelRequest]:
    return [request for request in it.model.requests if request.tools]


async def test_what_changed_between_two_prompts_is_named_once_at_its_place(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [answer(read("a.txt"), read("b.txt"), read("c.txt")), DONE, DONE, DONE]
    ) as it:
        for name in ("a.txt", "b.txt", "c.txt"):
            (it.work / name).write_text("one\n")
        await it.prompt()
        (it.work / "a.txt").write_text("two\n")
        (it.work / "b.txt").unlink()
        os.utime(it.work / "c.txt", (1, 1))  # touched, not changed
        await it.prompt()
        await it.prompt()
        *_, second, third = requests(it)
        assert told(second) == told(third) == [LINE.format("a.txt, b.txt (deleted)")]
        assert third.messages[: len(second.messages)] == second.messages, (
            "the cached beginning stays"
        )
        assert isinstance(second.messages[-1], UserModelMessage)


async def test_what_the_session_itself_changed_is_not_named(tmp_path: Path) -> None:
    edit = ScriptedCall("edit", {"filePath": "a.txt", "oldString": "one", "newString": "two"})
    script = [
        answer(read("a.txt"), read("b.txt")),
        answer(edit),
        answer(bash("echo more >> a.txt; rm b.txt")),
        DONE,
    ]
    async with open_scripted_project(
        tmp_path, script, permission={"bash": "allow"}, sandbox="off"
    ) as it:
        for name in ("a.txt", "b.txt"):
            (it.work / name).write_text("one\n")
        await it.prompt()
        assert (it.work / "a.txt").read_text() == "two\nmore\n"
        assert [told(request) for request in requests(it)] == [[]] * 4


async def test_what_others_changed_before_a_command_is_named_after_it(tmp_path: Path) -> None:
    script = [answer(read("a.txt")), DONE, answer(bash("true")), DONE]
    async with open_scripted_project(
        tmp_path, script, permission={"bash": "allow"}, sandbox="off"
    ) as it:
        (it.work / "a.txt").write_text("one\n")
        await it.prompt()
        log = it.project.workspace.read_log
        (it.work / "a.txt").write_text("two\n")
        log.begin_own_change(it.session_id)
        (it.work / "a.txt").write_text("three\n")
        log.end_own_change(it.session_id)
        await it.prompt()
        assert told(requests(it)[-1]) == [LINE.format("a.txt")]


async def test_what_it_is_stored_as_has_no_text_that_a_client_would_show(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [answer(read("a.txt")), DONE, DONE]) as it:
        (it.work / "a.txt").write_text("one\n")
        await it.prompt()
        (it.work / "a.txt").write_text("two\n")
        last = await it.prompt()
        texts = [part for part in last.parts if isinstance(part, TextPart)]
        assert [(part.text, part.synthetic) for part in texts] == [("", True), ("Done.", None)]
