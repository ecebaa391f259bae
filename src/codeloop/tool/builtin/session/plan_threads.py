"""Comments on a plan: threads that the model answers one by one before it may ask again whether the plan is good."""

import re
from collections.abc import Sequence

from codeloop.schema.wire import Wire, replace

THREADS = "threads"
"""The key in the metadata of a call of `plan_exit`: all threads so far, with their answers."""
_HEAD = re.compile(r"^About @(\S+) line (\d+)(?:, again)?:[ \t]*$", re.MULTILINE)
_EXCERPT = re.compile(r"\A```\w*\n.*?^```[ \t]*$", re.DOTALL | re.MULTILINE)


class PlanThread(Wire):
    """A comment of the user. `answer`: the model's, empty while it is open; without a file it is on the whole plan."""

    id: int
    text: str
    file: str = ""
    line: int = 0
    answer: str = ""


class ThreadAnswer(Wire):
    """An answer to the thread with this number."""

    thread: int
    answer: str


def has_comments(text: str) -> bool:
    """Return whether a text has comments on lines of a plan, as clients write them."""
    return any(".codeloop/plans/" in heading[1] for heading in _HEAD.finditer(text))


def read_comments(text: str, after: int) -> list[PlanThread]:
    """Return the comments of a text as threads with numbers after `after`; one on the whole plan if none names a line.

    A comment begins with a line `About @FILE line N:`; a fenced excerpt of the file behind that is left out.
    """
    heads = list(_HEAD.finditer(text))
    if not heads:
        return [PlanThread(id=after + 1, text=text.strip())]
    ends = [each.start() for each in heads[1:]] + [len(text)]
    return [
        PlanThread(
            id=after + number,
            text=_EXCERPT.sub("", text[head.end() : end].strip()).strip(),
            file=head[1],
            line=int(head[2]),
        )
        for number, (head, end) in enumerate(zip(heads, ends, strict=True), 1)
    ]


def answer_threads(threads: Sequence[PlanThread], answers: Sequence[ThreadAnswer]) -> list[PlanThread]:
    """Return the threads with these answers; those with numbers that no thread has, and empty ones, are left out."""
    texts = {each.thread: each.answer.strip() for each in answers}
    return [replace(each, answer=texts.get(each.id) or each.answer) for each in threads]


def list_open(threads: Sequence[PlanThread]) -> list[PlanThread]:
    """Return the threads without an answer."""
    return [each for each in threads if not each.answer]


def describe_threads(threads: Sequence[PlanThread]) -> str:
    """Return threads as lines: number, place and comment, and the answer where there is one."""
    lines: list[str] = []
    for each in threads:
        where = f", {each.file} line {each.line}" if each.file else ""
        lines.append(f"Thread {each.id}{where}: {each.text}")
        lines += [f"  Answer: {each.answer}"] if each.answer else []
    return "\n".join(lines)
