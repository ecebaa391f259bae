"""What the wrong calls that models make most often are answered: what would have worked, or what was meant is done."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from tests.tool.small_project import answer, small_project


class Wrong(Struct):
    """A call, and the texts that its answer holds. `done`: it is carried out nevertheless."""

    name: str
    tool: str
    given: dict[str, Any] | str
    holds: list[str]
    done: bool


ROWS = msgspec.json.Decoder(Wrong).decode_lines(Path(__file__).with_name("wrong_calls.jsonl").read_bytes())


@pytest.mark.parametrize("wrong", ROWS, ids=lambda wrong: wrong.name)
async def test_a_wrong_call_is_answered_with_what_works(tmp_path: Path, wrong: Wrong) -> None:
    text, done = await answer(small_project(tmp_path), wrong.tool, wrong.given)
    print(f"@@ {wrong.name}: {wrong.tool} {wrong.given}\n{text}\n@@")
    assert [part for part in wrong.holds if part not in text] == []
    assert done or not wrong.done
    assert len(text) < 1000
