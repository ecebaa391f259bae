"""The one comment that codeloop keeps in a thread: its text, and a hidden record for later jobs."""

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from codeloop.schema.bounds.automation import CI_COMMENT, CI_REQUESTS

MARKER = "<!-- codeloop-thread "
_RECORD = re.compile(re.escape(MARKER) + r"(\{.*?\}) -->")
_CUT = "\n\n... (the rest is in the session)"


class ThreadRecord(Struct, frozen=True, omit_defaults=True):
    """What later jobs need to know about a thread. `done`: keys of the events dealt with; `cost`: their dollars in all.

    `run`: the id of the job that works in the thread now, "" for none; `until`: when that job has ended at the latest,
    in seconds since the epoch.
    """

    done: tuple[str, ...] = ()
    cost: float = 0.0
    run: str = ""
    until: int = 0


def read_record(text: str) -> ThreadRecord:
    """Return the record in a comment of codeloop; an empty one if the comment has none that can be read."""
    match = _RECORD.match(text)
    try:
        return msgspec.json.decode(match[1], type=ThreadRecord) if match else ThreadRecord()
    except msgspec.DecodeError:
        return ThreadRecord()


def add_done(record: ThreadRecord, key: str, cost: float) -> ThreadRecord:
    """Return the record after the event with this key was dealt with: no job works in the thread any more."""
    keys = (*(each for each in record.done if each != key), key)[-CI_REQUESTS.value :]
    return ThreadRecord(done=keys, cost=round(record.cost + cost, 6))


def write_comment_text(record: ThreadRecord, title: str, text: str, facts: Sequence[str]) -> str:
    """Return a comment: the hidden record, a title, the text, and a line of facts."""
    record_comment = f"{MARKER}{msgspec.json.encode(record).decode()} -->"
    line = " · ".join(fact for fact in facts if fact)
    body = f"\n{text.strip()}\n" if text.strip() else ""
    return f"{record_comment}\n**codeloop** · {title}\n{body}" + (f"\n---\n{line}\n" if line else "")


def quote_answer(text: str) -> str:
    """Return a model's text, changed so that in a comment it notifies nobody, hides nothing and starts nothing.

    A host acts on `@names` and on lines that begin with `/`, and loads images from any address. Text that the model has
    read may have made it write such things.
    """
    quoted = text if len(text) <= CI_COMMENT.value else text[: CI_COMMENT.value].rstrip() + _CUT
    quoted = quoted.replace("<!--", "&lt;!--")
    quoted = re.sub(r"(?<![\w`/.])@(?=\w)", "@\u200b", quoted)
    quoted = re.sub(r"^(\s*)/(?=\w)", "\\1\u200b/", quoted, flags=re.MULTILINE)
    return re.sub(r"!\[([^\]\n]*)\](?=[(\[])", r"[\1]", re.sub(r"<(?=img\b)", "&lt;", quoted, flags=re.IGNORECASE))


def describe_cost(cost: float) -> str:
    """Return dollars as text for a comment."""
    return f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"
