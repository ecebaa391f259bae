"""A session as a page and as Markdown: all that was said is there,
and nothing of it becomes markup.
"""

from html.parser import HTMLParser
from pathlib import Path

from codeloop.client.export.atif import export_atif
from codeloop.client.export.html import export_html
from codeloop.client.export.markdown import export_markdown
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

EVIL = '<script>alert(1)</script> & "x" \x1b[2J'
ANSWER = f"Look:\n\n```python\nif a < b:\n    pass\n```\n\nand {EVIL}"
FENCE = "```\nnot the end\n```"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_a_session_is_written_for_people(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("write", filePath="a.txt", content=f"{FENCE}\n{EVIL}\n")),
        ScriptedAnswer(text=ANSWER),
    ]
    async with open_scripted_project(tmp_path, script) as it:
        await it.prompt(f"please {EVIL}")
        session = await it.client.call(SESSION_GET, SessionId(session_id=it.session_id))
        messages = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id))
        page = export_html(session, messages)
        read = Tags()
        read.feed(page)
        assert "script" not in read.tags
        assert read.tags.count("details") == 1
        assert {"pre", "code", "section"} <= set(read.tags)
        assert "if a < b:\n    pass" in read.text
        assert read.text.count("<script>alert(1)</script>") >= 3
        assert "\x1b" not in page
        assert "http" not in page.partition("<style>")[0].replace("http-equiv", "")
        text = export_markdown(session, messages)
        assert "## You\n\nplease <script>" in text
        assert "<details><summary><b>write</b>" in text
        assert "\x1b" not in text


async def test_a_trajectory_has_every_step_with_calls_results_and_sums(tmp_path: Path) -> None:
    script = [
        make_answer(
            make_call("write", filePath="a.txt", content="hello\n"),
            make_call("read", filePath="none.txt"),
        ),
        ScriptedAnswer(text="Done."),
    ]
    async with open_scripted_project(tmp_path, script) as it:
        await it.prompt("write hello")
        session = await it.client.call(SESSION_GET, SessionId(session_id=it.session_id))
        messages = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id))
        written = export_atif(session, messages)
        steps = written["steps"]
        assert [(step["step_id"], step["source"]) for step in steps] == [
            (1, "user"),
            (2, "agent"),
            (3, "agent"),
        ]
        assert (steps[0]["message"], steps[2]["message"]) == ("write hello", "Done.")
        assert [each["function_name"] for each in steps[1]["tool_calls"]] == ["write", "read"]
        results = steps[1]["observation"]["results"]
        assert [each["source_call_id"] for each in results] == [
            each["tool_call_id"] for each in steps[1]["tool_calls"]
        ]
        assert "none.txt" in results[1]["content"]
        total = sum(step["metrics"]["prompt_tokens"] for step in steps[1:])
        assert 0 < total <= written["final_metrics"]["total_prompt_tokens"]
