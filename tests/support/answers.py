"""Answers of the model server, as data: text, thinking, calls, token counts, and failures."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is sent unchanged, so it may be broken JSON;
    None: the field is null.
    """

    name: str
    arguments: str | None = "{}"
    id: str = "call_1"


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of tokens in an answer; `input` includes `cached`."""

    input: int = 100
    output: int = 20
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. Times are in seconds.

    `deltas`: how many pieces the text is sent in; 0: one for each word. `delay`: before each event.
    `finish`: why the answer ends, in the protocol's own word; "": the word that fits the answer;
    None: none is sent. `pieces`: bytes of a network write, which may split events, JSON and
    characters; 0: each event is one HTTP chunk. `hang`: before the status line. `stall_after`:
    events after which nothing is sent, while the connection stays open. `until`: what is true
    before the status line is sent, or, with `stall_after`, before the rest is. `cut_after`: events
    after which the connection is closed without the end of the body. `events`: the data of each
    event, verbatim, instead of all fields before.
    `status`: with any other than 200, `body` is sent.
    """

    text: str = ""
    reasoning: str = ""
    signature: str = ""
    redacted: str = ""
    calls: tuple[Call, ...] = ()
    counts: Counts | None = Counts()
    finish: str | None = ""
    deltas: int = 1
    delay: float = 0.0
    pieces: int = 0
    hang: float = 0.0
    stall_after: int | None = None
    until: Callable[[], object] | None = None
    cut_after: int | None = None
    line_end: str = "\n"
    events: tuple[str, ...] | None = None
    stream: bool = True
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: str = ""

    def words(self) -> list[str]:
        """Return the text in `deltas` pieces."""
        return split_text(self.text, self.deltas)


def split_text(text: str, parts: int) -> list[str]:
    """Return `text` in `parts` pieces of about the same length, or fewer if it is short;
    0: one for each word.
    """
    if not text:
        return []
    if parts == 0:
        return [f"{word} " for word in text.split(" ")[:-1]] + [text.rsplit(" ", maxsplit=1)[-1]]
    size = max(len(text) // max(parts, 1), 1)
    cuts = [*range(0, len(text), size)][:parts]
    return [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def parse_answer(data: dict[str, Any]) -> Answer:
    """Read an answer from JSON. `repeat: n` makes the text n times as long.
    Raises ValueError on unknown fields.
    """
    known = {each.name for each in fields(Answer)} - {"until"} | {"repeat"}
    if unknown := data.keys() - known:
        raise ValueError(f"an answer has no field {', '.join(sorted(unknown))}")
    values = dict(data)
    values["text"] = str(values.get("text", "")) * int(values.pop("repeat", 1))
    values["calls"] = tuple(Call(**call) for call in values.get("calls", ()))
    if values.get("counts") is not None:
        values["counts"] = Counts(**values["counts"])
    if values.get("events") is not None:
        values["events"] = tuple(values["events"])
    return Answer(**values)


@dataclass(frozen=True, slots=True)
class AnswerScript:
    """Answers in the order in which they are given, and the one for requests without tools (titles,
    summaries).
    """

    answers: tuple[Answer, ...]
    without_tools: Answer = Answer(text="A short title")


def read_script(path: Path) -> AnswerScript:
    """Read `{"answers": [...], "without_tools": {...}}`. Raises OSError, ValueError."""
    data = json.loads(path.read_text(encoding="utf-8"))
    answers = tuple(parse_answer(each) for each in data["answers"])
    if "without_tools" in data:
        return AnswerScript(answers, parse_answer(data["without_tools"]))
    return AnswerScript(answers)
