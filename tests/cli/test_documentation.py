"""docs/cli.md shows the JSON and explains the flags that there are (tests/test_readme.py runs its commands)."""

import re
from pathlib import Path
from typing import Any

from bench.answers import Answer
from bench.wire import Received
from tests.cli.program import Desk, bash, events, serving

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shape(line: dict[str, Any]) -> dict[str, Any]:
    """The fields of a line, and those of what it is about; `data` and `metadata` vary."""
    inner = line.get("part") or line.get("status") or {}
    return {"line": set(line), "inner": set(inner), "state": set(inner.get("state", {}))}


def test_the_lines_shown_have_the_fields_of_the_real_ones(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    turn = iter(
        [
            Answer(status=429, body="{}", headers={"retry-after": "0"}),
            Answer(text="I look.", reasoning="Let me see.", calls=bash("ls").calls),
            Answer(status=400, body="{}"),
        ]
    )

    def choose(received: Received) -> Answer:
        return next(turn)

    with serving(choose) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "--title", "T", "hello")
    real = {line["type"]: line for line in events(done.stdout)}
    (text,) = [text for language, text in BLOCK.findall(PAGE) if language == "json"]
    shown = {line["type"]: line for line in events(text)}
    assert list(shown)[-1] == "result"
    assert {kind: shape(line) for kind, line in shown.items()} == {kind: shape(line) for kind, line in real.items()}


def test_every_flag_of_run_is_explained(tmp_path: Path) -> None:
    flags = set(re.findall(r"--[a-z-]+", Desk(tmp_path).run("run", "--help").stdout)) - {"--help"}
    assert {flag for flag in flags if f"{flag}`" not in PAGE and f"{flag} " not in PAGE} == set()
