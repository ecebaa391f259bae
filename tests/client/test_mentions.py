"""Mentions of files in the words of a prompt."""

import sys
from pathlib import Path
from typing import Any

import pytest

from codeloop.client.mentions import find_mentions
from codeloop.kit.text.mentions import list_resource_mentions
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.mcp import MCP_ADD, AddMcp
from codeloop.schema.api.session_inputs import PROMPT, FilePartInput, Prompt, TextPartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.part import FilePart, FilePartSourceText, ResourceSource
from tests.extend.mcp.world import PLAIN
from tests.support.scripted_project import (
    ScriptedProject,
    list_texts,
    make_answer,
    make_call,
    open_scripted_project,
)


async def test_lines_of_a_file_are_attached_alone(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as desk:
        (desk.work / "a.py").write_text("one\ntwo\nthree\nfour\n")
        (desk.work / "b#1-2").write_text("whole\n")
        (desk.work / "link.py").symlink_to(desk.work / "a.py")
        text = "see @a.py#2-3 and @link.py#4 and @b#1-2, not @a.py#x"
        notes: list[str] = []
        files = [
            part
            for part in await find_mentions(desk.client, text, notes.append)
            if isinstance(part, FilePartInput)
        ]
        assert [file.filename for file in files] == ["a.py#2-3", "link.py#4", "b#1-2"]
        assert notes == ["@a.py#x does not exist and was not attached."]
        parts = [TextPartInput(text=text), *files]
        await desk.client.call(PROMPT, Prompt(session_id=desk.session_id, parts=parts))
        entries = desk.project.store.read_conversation(desk.session_id).entries
        said = [
            part_text
            for entry in entries
            for part in entry.parts
            if (part_text := getattr(part, "text", ""))
        ]
        attached = [
            each.partition(" the file ")[2] for each in said if each.startswith("The user attached")
        ]
        assert attached == [
            "a.py, lines 2 to 3:\ntwo\nthree\n",
            "a.py, lines 4 to 4:\nfour\n",
            "b#1-2:\nwhole\n",
        ]


async def test_a_directory_outside_the_project_is_not_said_to_be_missing(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    notes: list[str] = []
    async with open_scripted_project(tmp_path, []) as desk:
        (folder,) = await find_mentions(
            desk.client, f"see @{outside} and @{outside}/none", notes.append
        )
    assert isinstance(folder, FilePartInput)
    assert folder.mime == "application/x-directory"
    assert notes == [f"@{outside}/none does not exist and was not attached."]


@pytest.mark.parametrize(
    ("text", "attached"),
    [
        ("see @a.py:2-3", "file a.py, lines 2 to 3:\ntwo\nthree\n"),
        ("(see @a.py:2),", "file a.py, lines 2 to 2:\ntwo\n"),
        ("@a.py#L2-L3.", "file a.py, lines 2 to 3:\ntwo\nthree\n"),
        ("@a.py:L2", "file a.py, lines 2 to 2:\ntwo\n"),
        ("@app/(auth)/[id]/page.tsx please", "file app/(auth)/[id]/page.tsx:\npage\n"),
        ("is @it's.txt right?", "file it's.txt:\nits\n"),
        ("@a,b.txt, then", "file a,b.txt:\nab\n"),
        ("list @app/", "folder app/, which has:\n(auth)/"),
        ("(list @app).", "folder app/, which has:\n(auth)/"),
    ],
)
async def test_mentions_are_found_as_people_write_them(
    tmp_path: Path, text: str, attached: str
) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as it:
        (it.work / "a.py").write_text("one\ntwo\nthree\n")
        (it.work / "app/(auth)/[id]").mkdir(parents=True)
        for name, content in {
            "app/(auth)/[id]/page.tsx": "page\n",
            "it's.txt": "its\n",
            "a,b.txt": "ab\n",
        }.items():
            (it.work / name).write_text(content)
        assert (await said(it, text)).partition("The user attached the ")[2] == attached


SERVERS = {"p": {"type": "local", "command": [sys.executable, str(PLAIN)]}}


async def said(it: ScriptedProject, text: str) -> str:
    """Prompt as a person does, and return what the model was told."""
    parts = [
        TextPartInput(text=text),
        *await find_mentions(it.client, text, lambda note: pytest.fail(str(note))),
    ]
    await it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=parts))
    return "\n".join(list_texts(it.model.requests[-1].messages[-1]))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see @p:plain://note.", ["p:plain://note"]),
        ('@"p:db://x y?z=1" and @a.py:10', ["p:db://x y?z=1", "a.py:10"]),
        ("mail me@p:x, at @p: or @p", []),
    ],
)
def test_what_may_be_a_resource(text: str, names: list[str]) -> None:
    assert list_resource_mentions(text) == names


async def test_a_mentioned_resource_is_attached(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="Done.")] * 4
    async with open_scripted_project(tmp_path, answers, mcp=SERVERS) as it:
        (it.work / "p").write_text("a file of the server's name\n")
        found = await said(it, "read @p:plain://note please")
        assert (
            "The user attached the MCP resource p:plain://note:\nthe text of plain://note" in found
        )
        assert "a file of" not in found
        long = await said(it, "read @p:plain://long")
        assert "line 9\n" in long
        assert "line 9999" not in long
        assert "of the output left out here; the whole is in " in long
        await said(it, "look at @p:plain://pixel")
        files = [part for part in it.view().entries[-2].parts if isinstance(part, FilePart)]
        assert [(isinstance(file.source, ResourceSource), file.url[:16]) for file in files] == [
            (True, "plain://pixel"),
            (False, "data:image/png;b"),
        ]
        with pytest.raises(
            OperationError, match=r"p:plain://none was not attached\. The MCP server p answered"
        ):
            await said(it, "read @p:plain://none")


async def test_a_resource_is_no_file_of_this_machine_and_may_be_denied(tmp_path: Path) -> None:
    place = FilePartSourceText(value="@x", start=0, end=2)

    def part(server: str, uri: str) -> Any:
        source = ResourceSource(client_name=server, uri=uri, text=place)
        return FilePartInput(mime="text/plain", url=uri, filename=f"{server}:{uri}", source=source)

    denied = {"mcp_resource": {"p:plain://note": "deny"}}
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Done.")] * 2, mcp=SERVERS, permission=denied
    ) as it:
        secret = it.work / "here.txt"
        secret.write_text("of this machine\n")

        async def told_of(*parts: Any) -> str:
            given = [TextPartInput(text="@x"), *parts]
            await it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=given))
            return "\n".join(list_texts(it.model.requests[-1].messages[-1]))

        found = await told_of(part("p", secret.as_uri()))
        assert "the text of file://" in found
        assert "of this machine" not in found
        assert "is not attached. " in await told_of(part("p", "plain://note"))
        with pytest.raises(OperationError, match=r"there is no MCP server 'q'\. There are: p"):
            await told_of(part("q", "plain://note"))


async def test_a_resource_that_has_changed_is_told_with_the_next_result_or_prompt(
    tmp_path: Path,
) -> None:
    touch = make_answer(make_call("p_touch", "a", uri="plain://note"))
    script = [
        ScriptedAnswer(text="Read."),
        touch,
        touch,
        ScriptedAnswer(text="Done."),
        ScriptedAnswer(text="Done."),
    ]
    async with open_scripted_project(tmp_path, script, mcp=SERVERS) as it:
        await it.client.call(MCP_ADD, AddMcp(name="p", config=SERVERS["p"]))
        await said(it, "read @p:plain://note")
        await it.prompt("touch it twice")
        changed = "The MCP resource p:plain://note has changed since you read it"
        assert changed in "\n".join([*it.results(), await said(it, "and now?")])
