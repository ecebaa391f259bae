"""What the request still carries is not sent a second time, and only then: ranges,
instructions of a folder.
"""

from pathlib import Path

from codeloop.model.chat import ModelInfo, TokenLimits
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.schema.api.session_requests import SESSION_FORK, ForkSession
from codeloop.schema.api.session_undo import SESSION_REVERT, RevertSession
from codeloop.schema.event import PartInfo, PartUpdated
from codeloop.schema.ids import now_ms
from codeloop.schema.message import UserMessage
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import replace
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    read_result,
)

TEXT = "".join(f"value_{n} = {n}\n" for n in range(1, 81))
SAME = "a.py lines {} of 80 have not changed since you read them above."
RULES = "Instructions for this folder, from docs/AGENTS.md:\nWrite plain sentences."


def write(tmp_path: Path, text: str = TEXT) -> Path:
    file = tmp_path / "work" / "a.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def read(**more: int) -> ScriptedAnswer:
    return make_answer(ScriptedCall("read", {"filePath": "a.py", **more}))


def turns(*answers: ScriptedAnswer) -> list[ScriptedAnswer]:
    return [turn for answer in answers for turn in (answer, ScriptedAnswer(text="ok"))]


async def ask(it: ScriptedProject, times: int) -> list[str]:
    for _ in range(times):
        await it.prompt()
    return it.results()


def prune(it: ScriptedProject, part: ToolPart) -> None:
    assert isinstance(part.state, ToolStateCompleted)
    state = replace(part.state, time=replace(part.state.time, compacted=now_ms()))
    pruned = PartInfo(session_id=it.session_id, part=replace(part, state=state), time=now_ms())
    it.project.store.append(PartUpdated(properties=pruned))


async def test_the_same_range_or_a_part_of_it_is_not_sent_again(tmp_path: Path) -> None:
    write(tmp_path)
    ranges = [read(), read(), read(offset=10, limit=40), read(offset=2)]
    async with open_scripted_project(tmp_path, turns(*ranges)) as it:
        first, *rest = await ask(it, 4)
        assert first.startswith("1: value_1")
        assert rest == [
            SAME.format("1-80"),
            SAME.format("10-49"),
            SAME.format("2-80"),
        ]
        state = it.calls()[1].state
        assert isinstance(state, ToolStateCompleted)
        assert state.metadata["display"]["text"] == TEXT.removesuffix("\n"), (
            "a person sees the lines"
        )


async def test_pieces_add_up_and_a_line_more_is_sent(tmp_path: Path) -> None:
    write(tmp_path)
    async with open_scripted_project(
        tmp_path, turns(read(limit=40), read(offset=41, limit=30), read(limit=70), read())
    ) as it:
        results = await ask(it, 4)
        assert results[2].startswith(SAME.format("1-70"))
        assert results[3].startswith("1: value_1")


async def test_a_file_that_changed_is_sent_and_what_did_not_change_in_it_is_not(
    tmp_path: Path,
) -> None:
    file = write(tmp_path)
    answers = turns(read(), read(offset=1, limit=40), read(), read(offset=1, limit=40), read())
    async with open_scripted_project(tmp_path, answers) as it:
        await ask(it, 1)
        file.write_text(TEXT.replace("value_60 = 60", "value_60 = 0"))
        assert (await ask(it, 1))[-1].startswith(SAME.format("1-40"))
        assert "60: value_60 = 0" in (await ask(it, 1))[-1]
        file.write_text(TEXT.replace("value_7 = 7", "value_7 = 0"))
        assert "7: value_7 = 0" in (await ask(it, 1))[-1]
        assert "60: value_60 = 60" in (await ask(it, 1))[-1]


async def test_an_edit_by_the_model_is_a_change(tmp_path: Path) -> None:
    write(tmp_path)
    edit = make_answer(
        make_call("edit", filePath="a.py", oldString="value_5 = 5", newString="value_5 = 6")
    )
    async with open_scripted_project(tmp_path, turns(read(), edit, read(), read())) as it:
        results = await ask(it, 4)
        assert "\n5: value_5 = 6\n" in results[2]
        assert results[3] == SAME.format("1-80")


async def test_what_was_pruned_is_sent_again(tmp_path: Path) -> None:
    write(tmp_path)
    async with open_scripted_project(tmp_path, turns(read(), read(), read())) as it:
        await ask(it, 2)
        prune(it, it.calls()[0])
        assert (await ask(it, 1))[-1].startswith("1: value_1"), (
            "a line that only refers to it is not a copy"
        )


async def test_what_was_compacted_away_is_sent_again(tmp_path: Path) -> None:
    write(tmp_path)
    info = ModelInfo(
        provider_id="scripted",
        id="small",
        name="Small",
        limits=TokenLimits(context=10_000, output=1_000),
    )
    full = ScriptedAnswer(
        calls=(ScriptedCall("read", {"filePath": "a.py"}),),
        tokens=TokenCount(input=9_000, output=10),
    )
    note = ScriptedAnswer(kind="side", text="NOTE")
    async with open_scripted_project(
        tmp_path, [full, note, read(), ScriptedAnswer(text="ok")], info=info
    ) as it:
        await it.prompt()
        assert [text[:10] for text in it.results()] == ["1: value_1"] * 2


async def test_it_holds_after_a_restart_and_in_a_fork_but_not_in_another_session(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    async with open_scripted_project(tmp_path, turns(read())) as it:
        await ask(it, 1)
        session_id = it.session_id
        fork = (await it.client.call(SESSION_FORK, ForkSession(session_id=session_id))).id
    async with open_scripted_project(tmp_path, turns(read()), session_id=session_id) as it:
        assert (await ask(it, 1))[-1] == SAME.format("1-80")
    async with open_scripted_project(tmp_path, turns(read()), session_id=fork) as it:
        assert (await ask(it, 1))[-1] == SAME.format("1-80")
    async with open_scripted_project(tmp_path, turns(read())) as it:
        assert (await ask(it, 1))[-1].startswith("1: value_1")


async def revert(it: ScriptedProject, message_id: str) -> None:
    await it.client.call(
        SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=message_id)
    )


def prompts(it: ScriptedProject) -> list[str]:
    return [entry.info.id for entry in it.view().entries if isinstance(entry.info, UserMessage)]


async def test_what_an_undo_took_back_is_sent_again(tmp_path: Path) -> None:
    write(tmp_path)
    async with open_scripted_project(tmp_path, turns(read(), read())) as it:
        await ask(it, 1)
        await revert(it, prompts(it)[0])
        assert (await ask(it, 1))[-1].startswith("1: value_1")


async def test_what_was_read_before_the_undone_turn_is_not_sent_again(tmp_path: Path) -> None:
    write(tmp_path)
    edit = make_answer(
        make_call("edit", filePath="a.py", oldString="value_5 = 5", newString="value_5 = 6")
    )
    async with open_scripted_project(tmp_path, turns(read(), edit, read())) as it:
        await ask(it, 2)
        await revert(it, prompts(it)[1])
        assert (it.work / "a.py").read_text() == TEXT, "the undo took the edit back"
        assert (await ask(it, 1))[-1] == SAME.format("1-80")


async def test_a_subagent_has_read_nothing_and_leaves_nothing_read(tmp_path: Path) -> None:
    write(tmp_path)
    job = make_call("task", description="Look", prompt="Look.", subagent_type="general")
    inside = [read(), read(offset=1, limit=40), ScriptedAnswer(text="Looked.")]
    answers = [
        *turns(read()),
        make_answer(job),
        *inside,
        ScriptedAnswer(text="ok"),
        *turns(read(limit=40)),
    ]
    async with open_scripted_project(tmp_path, answers) as it:
        await ask(it, 2)
        (child,) = it.project.store.list_sessions(parent=it.session_id)
        parts = [
            part
            for entry in it.project.store.read_conversation(child.id).entries
            for part in entry.parts
        ]
        first, second = (read_result(part) for part in parts if isinstance(part, ToolPart))
        assert first.startswith("1: value_1"), (
            "what the parent has read is not in the subagent's requests"
        )
        assert second.startswith(SAME.format("1-40"))
        assert (await ask(it, 1))[-1].startswith(SAME.format("1-40")), (
            "the parent's own reading still counts"
        )


async def test_what_only_a_subagent_has_read_is_sent(tmp_path: Path) -> None:
    write(tmp_path)
    job = make_call("task", description="Look", prompt="Look.", subagent_type="general")
    answers = [
        make_answer(job),
        read(),
        ScriptedAnswer(text="Looked."),
        ScriptedAnswer(text="ok"),
        *turns(read()),
    ]
    async with open_scripted_project(tmp_path, answers) as it:
        assert (await ask(it, 2))[-1].startswith("1: value_1")


def document(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "docs"
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Write plain sentences.\n")
    (folder / "guide.md").write_text("# Guide\n")
    (folder / "other.md").write_text("# Other\n")


def read_doc(*names: str) -> ScriptedAnswer:
    return make_answer(
        *(make_call("read", f"call_{name}", filePath=f"docs/{name}.md") for name in names)
    )


async def told_rules(it: ScriptedProject, times: int) -> list[bool]:
    return [RULES in text for text in await ask(it, times)]


async def test_the_instructions_of_a_folder_are_sent_once(tmp_path: Path) -> None:
    document(tmp_path)
    answers = turns(read_doc("guide", "other"), read_doc("other"))
    async with open_scripted_project(tmp_path, answers) as it:
        first, second, later = await told_rules(it, 2)
        assert first != second, "one call of a step has them"
        assert not later
        session_id = it.session_id
    async with open_scripted_project(
        tmp_path, turns(read_doc("guide")), session_id=session_id
    ) as it:
        assert not (await told_rules(it, 1))[-1], "a restart forgets nothing"
    async with open_scripted_project(tmp_path, turns(read_doc("guide"))) as it:
        assert await told_rules(it, 1) == [True], "another session has not seen them"


async def test_instructions_that_were_read_as_a_file_are_not_sent_beside_another(
    tmp_path: Path,
) -> None:
    document(tmp_path)
    async with open_scripted_project(tmp_path, turns(read_doc("AGENTS"), read_doc("guide"))) as it:
        assert await told_rules(it, 2) == [False, False]


async def test_instructions_that_were_edited_are_sent_as_they_are_now(tmp_path: Path) -> None:
    document(tmp_path)
    rules = tmp_path / "work" / "docs" / "AGENTS.md"
    async with open_scripted_project(
        tmp_path, turns(*[read_doc("guide"), read_doc("other")] * 3)
    ) as it:
        first = (await ask(it, 1))[-1]
        rules.write_text("Write short sentences.\n")
        changed, same = await ask(it, 1), await ask(it, 1)
        rules.write_text("Write plain sentences.\n")
        back, last = await ask(it, 1), await ask(it, 1)
    assert RULES in first
    assert changed[-1].endswith(
        "\n\ndocs/AGENTS.md has changed since it was given above:\n<system-reminder>\n"
        "Instructions for this folder, from docs/AGENTS.md:\nWrite short sentences.\n</system-reminder>"
    )
    assert "sentences" not in same[-1]
    assert "has changed" in back[-1]
    assert RULES in back[-1], "the earlier words were replaced, so they are given again"
    assert "sentences" not in last[-1]


async def test_instructions_that_were_read_as_a_file_and_edited_are_sent(tmp_path: Path) -> None:
    document(tmp_path)
    async with open_scripted_project(tmp_path, turns(read_doc("AGENTS"), read_doc("guide"))) as it:
        await ask(it, 1)
        (it.work / "docs" / "AGENTS.md").write_text("Write short sentences.\n")
        assert "Write short sentences." in (await ask(it, 1))[-1]


async def test_the_project_s_own_instructions_are_those_of_the_time_of_the_prompt(
    tmp_path: Path,
) -> None:
    document(tmp_path)
    rules = tmp_path / "work" / "AGENTS.md"
    rules.write_text("Say please.\n")
    async with open_scripted_project(tmp_path, turns(read_doc("guide"), read_doc("guide"))) as it:
        await ask(it, 1)
        rules.write_text("Say thanks.\n")
        await ask(it, 1)
        told = ["Say thanks." in request.system for request in it.model.requests if request.tools]
    assert told == [False, False, True, True]


async def test_instructions_that_a_batch_loaded_are_not_sent_again(tmp_path: Path) -> None:
    document(tmp_path)
    inner = [{"tool": "read", "parameters": {"filePath": "docs/guide.md"}}]
    async with open_scripted_project(
        tmp_path, turns(make_answer(make_call("batch", tool_calls=inner)), read_doc("other"))
    ) as it:
        assert await told_rules(it, 2) == [True, False]


async def test_instructions_that_were_pruned_are_sent_again(tmp_path: Path) -> None:
    document(tmp_path)
    async with open_scripted_project(tmp_path, turns(read_doc("guide"), read_doc("other"))) as it:
        await ask(it, 1)
        prune(it, it.calls()[0])
        assert (await told_rules(it, 1))[-1]


async def test_instructions_that_were_compacted_away_are_sent_again(tmp_path: Path) -> None:
    document(tmp_path)
    info = ModelInfo(
        provider_id="scripted",
        id="small",
        name="Small",
        limits=TokenLimits(context=10_000, output=1_000),
    )
    full = ScriptedAnswer(calls=read_doc("guide").calls, tokens=TokenCount(input=9_000, output=10))
    note = ScriptedAnswer(kind="side", text="NOTE")
    async with open_scripted_project(
        tmp_path, [full, note, read_doc("other"), ScriptedAnswer(text="ok")], info=info
    ) as it:
        assert await told_rules(it, 1) == [True, True]


async def test_a_read_after_a_refused_edit_shows_the_lines(tmp_path: Path) -> None:
    write(tmp_path)
    refused = make_answer(
        make_call("edit", filePath="a.py", oldString="no such text", newString="x")
    )
    async with open_scripted_project(tmp_path, turns(read(), refused, read(), read())) as it:
        first, _, shown, again = await ask(it, 4)
    assert shown == first
    assert again == SAME.format("1-80")


async def test_lines_that_an_edit_above_them_moved_are_not_sent_again(tmp_path: Path) -> None:
    write(tmp_path)
    edit = make_answer(
        make_call(
            "edit",
            filePath="a.py",
            oldString="value_1 = 1\n",
            newString="import os\n\nvalue_1 = 1\n",
        )
    )
    async with open_scripted_project(
        tmp_path, turns(read(), edit, read(offset=42, limit=20), read(offset=1, limit=20))
    ) as it:
        *_, moved, changed = await ask(it, 4)
    assert moved.startswith(
        "a.py lines 42-61 of 82 have not changed since you read them above, as 40-59."
    )
    assert changed.startswith("1: import os")


async def test_a_search_names_the_lines_of_a_block_that_were_read(tmp_path: Path) -> None:
    body = "".join(f"    value_{n} = {n}\n" for n in range(1, 31))
    write(tmp_path, f"def sums():\n{body}    return value_3\n")
    search = make_answer(make_call("grep", pattern="value_9 =", block=True))
    edit = make_answer(
        make_call("edit", filePath="a.py", oldString="value_20 = 20", newString="value_20 = 21")
    )
    async with open_scripted_project(tmp_path, turns(read(), search, edit, search)) as it:
        _, found, _, again = await ask(it, 4)
    assert found.endswith(
        "a.py\n(1-9 as you read them above)\n10:     value_9 = 9\n(11-32 as you read them above)"
    ), found
    assert "(11-20 as you read them above)\n21-     value_20 = 21\n(22-32 as" in again
