"""The one comment that codeloop keeps in an issue or pull request: its text,
and a hidden record for later jobs.
"""

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from codeloop.schema.bounds.automation import CI_REQUESTS

COMMENT_MARKER = "<!-- codeloop-thread "
_RECORD_PATTERN = re.escape(COMMENT_MARKER) + r"(\{.*?\}) -->"


class ThreadRecord(Struct, frozen=True, omit_defaults=True):
    """The record of a thread for later jobs. `done`: keys of the handled events;
    `cost`: the dollars of all of them.

    `run`: the id of the job that works in the thread now, "" for none. `until`: the latest time at
    which that job ends, in seconds since the epoch.
    """

    done: tuple[str, ...] = ()
    cost: float = 0.0
    run: str = ""
    until: int = 0


def read_record(text: str) -> ThreadRecord:
    """Return the record in a comment of codeloop;
    an empty one if there is none or it can't be parsed.
    """
    # `match`, not `search`: a model could write a record further down in the text.
    match = re.match(_RECORD_PATTERN, text)
    try:
        return msgspec.json.decode(match[1], type=ThreadRecord) if match else ThreadRecord()
    except msgspec.DecodeError:
        return ThreadRecord()


def mark_done(record: ThreadRecord, key: str, cost: float) -> ThreadRecord:
    """Return the record after the event with this key was handled.
    No job works in the thread then.
    """
    keys = (*(each for each in record.done if each != key), key)[-CI_REQUESTS.value :]
    return ThreadRecord(done=keys, cost=round(record.cost + cost, 6))


def render_comment(record: ThreadRecord, title: str, text: str, facts: Sequence[str]) -> str:
    """Return a comment: the hidden record, a title, the text (Markdown), and a line of facts."""
    record_comment = f"{COMMENT_MARKER}{msgspec.json.encode(record).decode()} -->"
    line = " · ".join(fact for fact in facts if fact)
    # A space at the start belongs to the fence of a block of code.
    content = text.strip("\n")
    body = f"\n{content}\n" if content else ""
    footer = f"\n---\n{line}\n" if line else ""
    return f"{record_comment}\n**codeloop** · {title}\n{body}{footer}"
