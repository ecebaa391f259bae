"""Threads of comments on a plan: the model must answer each before it may ask again for approval of the plan."""

import re
from collections.abc import Sequence

from codeloop.schema.wire import Wire, replace

THREADS = "threads"
"""The key in the metadata of a `plan_exit` call for all threads so far, with their answers."""
_COMMENT_HEADING = re.compile(r"^About @(\S+) line (\d+)(?:, again)?:[ \t]*$", re.MULTILINE)
_EXCERPT = re.compile(r"\A```\w*\n.*?^```[ \t]*$", re.DOTALL | re.MULTILINE)


class PlanThread(Wire):
    """A comment of the user on a line of a file, or, without a file, on the whole plan.

    `answer`: the model's answer, empty while the thread is open.
    """

    id: int
    text: str
    file: str = ""
    line: int = 0
    answer: str = ""


class ThreadAnswer(Wire):
    """The model's answer to the thread with the number `thread`."""

    thread: int
    answer: str


def has_comments(text: str) -> bool:
    """Return whether a text has comments on lines of a plan file, in the form that clients write."""
    return any(".codeloop/plans/" in heading[1] for heading in _COMMENT_HEADING.finditer(text))


def read_comments(text: str, after: int) -> list[PlanThread]:
    """Return the comments of a text as threads, numbered from `after` + 1.

    A comment begins with a line `About @FILE line N:`, and a fenced excerpt of the file after it is left out. A text
    without such lines is one comment on the whole plan.
    """
    heads = list(_COMMENT_HEADING.finditer(text))
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
    """Return the threads with these answers; empty answers, and those to unknown threads, are ignored."""
    texts = {each.thread: each.answer.strip() for each in answers}
    return [replace(each, answer=texts.get(each.id) or each.answer) for each in threads]


def list_open(threads: Sequence[PlanThread]) -> list[PlanThread]:
    """Return the threads without an answer."""
    return [each for each in threads if not each.answer]


def describe_threads(threads: Sequence[PlanThread]) -> str:
    """Return threads as lines: number, file and line, comment, and the answer if there is one."""
    lines: list[str] = []
    for each in threads:
        where = f", {each.file} line {each.line}" if each.file else ""
        lines.append(f"Thread {each.id}{where}: {each.text}")
        lines += [f"  Answer: {each.answer}"] if each.answer else []
    return "\n".join(lines)
