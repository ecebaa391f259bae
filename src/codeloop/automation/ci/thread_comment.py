"""The one comment that codeloop keeps in an issue or pull request: its text, and a hidden record for later jobs."""

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from codeloop.schema.bounds.automation import CI_COMMENT, CI_REQUESTS

COMMENT_MARKER = "<!-- codeloop-thread "
_RECORD_PATTERN = re.compile(re.escape(COMMENT_MARKER) + r"(\{.*?\}) -->")
_TRUNCATION_NOTE = "\n\n... (the rest is in the session)"


class ThreadRecord(Struct, frozen=True, omit_defaults=True):
    """The record of a thread for later jobs. `done`: keys of the handled events; `cost`: the dollars of all of them.

    `run`: the id of the job that works in the thread now, "" for none. `until`: the latest time at which that job ends,
    in seconds since the epoch.
    """

    done: tuple[str, ...] = ()
    cost: float = 0.0
    run: str = ""
    until: int = 0


def read_record(text: str) -> ThreadRecord:
    """Return the record in a comment of codeloop; an empty one if there is none or it can't be parsed."""
    # `match`, not `search`: a model could write a record further down in the text.
    match = _RECORD_PATTERN.match(text)
    try:
        return msgspec.json.decode(match[1], type=ThreadRecord) if match else ThreadRecord()
    except msgspec.DecodeError:
        return ThreadRecord()


def mark_done(record: ThreadRecord, key: str, cost: float) -> ThreadRecord:
    """Return the record after the event with this key was handled. No job works in the thread then."""
    keys = (*(each for each in record.done if each != key), key)[-CI_REQUESTS.value :]
    return ThreadRecord(done=keys, cost=round(record.cost + cost, 6))


def render_comment(record: ThreadRecord, title: str, text: str, facts: Sequence[str]) -> str:
    """Return a comment: the hidden record, a title, the text, and a line of facts."""
    record_comment = f"{COMMENT_MARKER}{msgspec.json.encode(record).decode()} -->"
    line = " · ".join(fact for fact in facts if fact)
    body = f"\n{text.strip()}\n" if text.strip() else ""
    footer = f"\n---\n{line}\n" if line else ""
    return f"{record_comment}\n**codeloop** · {title}\n{body}{footer}"


def sanitize_answer(text: str) -> str:
    """Return a model's text, changed so that as a comment it notifies nobody, hides nothing and starts nothing."""
    # Text that the model has read may have made it write any of this. HTML comments are hidden.
    safe_text = text if len(text) <= CI_COMMENT.value else text[: CI_COMMENT.value].rstrip() + _TRUNCATION_NOTE
    safe_text = safe_text.replace("<!--", "&lt;!--")
    # `@name` notifies a user, and a line such as `/merge` is a command to the host. A zero-width space stops both.
    safe_text = re.sub(r"(?<![\w`/.])@(?=\w)", "@\u200b", safe_text)
    safe_text = re.sub(r"^(\s*)/(?=\w)", "\\1\u200b/", safe_text, flags=re.MULTILINE)
    # The address of an image is loaded when the comment is read, and could carry data away.
    safe_text = re.sub(r"<(?=img\b)", "&lt;", safe_text, flags=re.IGNORECASE)
    return re.sub(r"!\[([^\]\n]*)\](?=[(\[])", r"[\1]", safe_text)


def format_cost(cost: float) -> str:
    """Return dollars as text for a comment."""
    return f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"
