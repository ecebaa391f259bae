"""What the wrong calls that models make most often are answered: what would have worked,
or what was meant is done.
"""

from collections import Counter
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from codeloop.app.toolbox import find_search_tools
from codeloop.schema.config import SearchConfig
from codeloop.schema.part import ToolStateCompleted
from codeloop.tool.toolbox import Toolbox
from tests.support.scripted_project import read_result
from tests.tool.builtin.test_websearch import Exa
from tests.tool.small_project import BOX, answer, small_project
from tests.tool.test_session_results import FOUND, WRITTEN_PLAN, Case, made, tavily
from tests.tool.web_server import serving


class Wrong(Struct):
    """A call, and the texts that its answer holds. `done`: it is carried out nevertheless.

    `background`: a command that was started before. `by`: who answers it;
    "plan": a person whom the plan agent asks.
    """

    name: str
    tool: str
    given: dict[str, Any] | str
    holds: list[str]
    done: bool
    background: str = ""
    by: Literal["", "person", "plan", "subagent", "service"] = ""


ROWS = msgspec.json.Decoder(Wrong).decode_lines(
    Path(__file__).with_name("wrong_calls.jsonl").read_bytes()
)


async def answered(tmp_path: Path, wrong: Wrong) -> tuple[str, bool]:
    if wrong.by == "service" and wrong.name.startswith("codesearch"):
        text = "https://docs.test/timeout"
        async with serving(Exa(result={"content": [{"type": "text", "text": text}]})) as server:
            box = Toolbox(find_search_tools(SearchConfig(provider="exa", base_url=server.url), {}))
            return await answer(small_project(tmp_path), wrong.tool, wrong.given, box)
    if wrong.by == "service":
        async with serving(tavily) as server:
            box = Toolbox(
                find_search_tools(
                    SearchConfig(provider="tavily", base_url=server.url, api_key="k"), {}
                )
            )
            return await answer(small_project(tmp_path), wrong.tool, wrong.given, box)
    if wrong.by:
        assert isinstance(wrong.given, dict)
        answers = [["Yes"]] if wrong.done and wrong.by != "subagent" else None
        case = Case(wrong.given, (FOUND,), answers)
        if wrong.by == "plan":
            case = replace(case, agent="plan", before=(WRITTEN_PLAN,))
        part = await made(tmp_path, wrong.tool, case)
        return read_result(part), isinstance(part.state, ToolStateCompleted)
    ctx = small_project(tmp_path)
    if wrong.background:
        await answer(ctx, "bash", {"command": wrong.background, "run_in_background": True})
    return await answer(ctx, wrong.tool, wrong.given)


def test_each_tool_has_ten_wrong_calls() -> None:
    counts = Counter(wrong.name.partition(":")[0] for wrong in ROWS)
    tools = (set(BOX.tools_by_name) | {"websearch", "codesearch"}) - {"apply_patch"} | {"patch"}
    assert {tool: counts[tool] for tool in tools if counts[tool] < 10} == {}


@pytest.mark.parametrize("wrong", ROWS, ids=lambda wrong: wrong.name)
async def test_a_wrong_call_is_answered_with_what_works(tmp_path: Path, wrong: Wrong) -> None:
    text, done = await answered(tmp_path, wrong)
    print(f"@@ {wrong.name}: {wrong.tool} {wrong.given}\n{text}\n@@")
    assert [part for part in wrong.holds if part not in text] == []
    assert done or not wrong.done
    assert len(text) < 1000
