"""The single comment of a thread: its text, and the embedded record that a later run reads."""

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from codeloop.schema.bounds.automation import CI_COMMENT, CI_REQUESTS

MARKER = "<!-- codeloop-thread "
_RECORD = re.compile(re.escape(MARKER) + r"(\{.*?\}) -->")
_CUT = "\n\n... (the rest is in the session)"


class ThreadRecord(Struct, frozen=True, omit_defaults=True):
    """What is remembered of a thread. `done`: keys of requests that are carried out; `cost`: dollars of all of them.

    `run`: the job that works on it now, "" for none; `until`: when that is over at the latest, in seconds since 1970.
    """

    done: tuple[str, ...] = ()
    cost: float = 0.0
    run: str = ""
    until: int = 0


def read_record(text: str) -> ThreadRecord:
    """Return the record in a comment of ours; an empty one where there is none that can be read."""
    match = _RECORD.match(text)
    try:
        return msgspec.json.decode(match[1], type=ThreadRecord) if match else ThreadRecord()
    except msgspec.DecodeError:
        return ThreadRecord()


def add_done(record: ThreadRecord, key: str, cost: float) -> ThreadRecord:
    """Return a record in which a request is carried out, and no job works any more."""
    keys = (*(each for each in record.done if each != key), key)[-CI_REQUESTS.value :]
    return ThreadRecord(done=keys, cost=round(record.cost + cost, 6))


def write_comment_text(record: ThreadRecord, title: str, text: str, facts: Sequence[str]) -> str:
    """Return a comment: the hidden record, a title, the text, and a line of facts."""
    record_comment = f"{MARKER}{msgspec.json.encode(record).decode()} -->"
    line = " · ".join(fact for fact in facts if fact)
    body = f"\n{text.strip()}\n" if text.strip() else ""
    return f"{record_comment}\n**codeloop** · {title}\n{body}" + (f"\n---\n{line}\n" if line else "")


def quote_answer(text: str) -> str:
    """Return a model's text so that in a comment it notifies nobody, hides nothing and starts nothing.

    A host acts on `@names`, on lines that begin with `/`, and shows pictures of any address; a model may have been
    talked into writing them.
    """
    quoted = text if len(text) <= CI_COMMENT.value else text[: CI_COMMENT.value].rstrip() + _CUT
    quoted = quoted.replace("<!--", "&lt;!--")
    quoted = re.sub(r"(?<![\w`/.])@(?=\w)", "@\u200b", quoted)
    quoted = re.sub(r"^(\s*)/(?=\w)", "\\1\u200b/", quoted, flags=re.MULTILINE)
    return re.sub(r"!\[([^\]\n]*)\](?=[(\[])", r"[\1]", re.sub(r"<(?=img\b)", "&lt;", quoted, flags=re.IGNORECASE))


def describe_cost(cost: float) -> str:
    """Return dollars as a comment shows them."""
    return f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"
