"""Mentions of files in the words of a prompt."""

from pathlib import Path

from codeloop.client.mentions import mentioned
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import FilePartInput, Prompt, TextPartInput
from codeloop.schema.operation import PROMPT
from tests.support.project import rig


async def test_lines_of_a_file_are_attached_alone(tmp_path: Path) -> None:
    async with rig(tmp_path, [ScriptedAnswer(text="Done.")]) as desk:
        (desk.work / "a.py").write_text("one\ntwo\nthree\nfour\n")
        (desk.work / "b#1-2").write_text("whole\n")
        (desk.work / "link.py").symlink_to(desk.work / "a.py")
        text = "see @a.py#2-3 and @link.py#4 and @b#1-2, not @a.py#x"
        notes: list[str] = []
        files = [part for part in await mentioned(desk.client, text, notes.append) if isinstance(part, FilePartInput)]
        assert [file.filename for file in files] == ["a.py#2-3", "link.py#4", "b#1-2"]
        assert notes == ["@a.py#x does not exist and was not attached."]
        parts = [TextPartInput(text=text), *files]
        await desk.client.call(PROMPT, Prompt(session_id=desk.session_id, parts=parts))
        entries = desk.project.store.conversation(desk.session_id).entries
        said = [part_text for entry in entries for part in entry.parts if (part_text := getattr(part, "text", ""))]
        attached = [each.partition(" the file ")[2] for each in said if each.startswith("The user attached")]
        assert attached == ["a.py, lines 2 to 3:\ntwo\nthree\n", "a.py, lines 4 to 4:\nfour\n", "b#1-2:\nwhole\n"]
