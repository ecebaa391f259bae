"""The thread of an event as it was at the event: what somebody wrote or changed later
is not part of the request.
"""

import math

from msgspec import Struct

from codeloop.schema.wire import replace
from codeloop_automation.ci.event import CiEvent
from codeloop_automation.ci.hosts.host import NO_THREAD, Host, Thread, ThreadText


class EventThread(Struct, frozen=True):
    """`thread`: as it was at the event. `late_texts`: the number of comments left out,
    which came or changed later.

    `changes`: what of the request itself was changed since the event, such as "the title".
    """

    thread: Thread
    late_texts: int = 0
    changes: tuple[str, ...] = ()


async def read_event_thread(host: Host, event: CiEvent) -> EventThread:
    """Read the thread of an event from its host, and compare it with what the event says.
    Raises HostProblem.
    """
    if not event.number:
        return EventThread(NO_THREAD)
    current = await host.read_thread(event.number, is_pull=event.is_pull)
    changes = list[str]()
    if event.title is not None and event.title.strip() != current.title.strip():
        changes.append("the title")
    if event.body is not None and _normalize(event.body) != _normalize(current.body):
        changes.append("the description")
    if event.source:
        comment = await host.read_text(event.source)
        if comment is None:
            changes.append("the comment (it was deleted)")
        elif _normalize(comment) != _normalize(event.text):
            changes.append("the comment")
    texts = [_read_at_event(each, event) for each in current.texts]
    texts_at_event = tuple(each for each in texts if each is not None)
    thread = replace(
        current,
        title=current.title if event.title is None else event.title,
        body=current.body if event.body is None else event.body,
        texts=texts_at_event,
    )
    return EventThread(thread, len(current.texts) - len(texts_at_event), tuple(changes))


def describe_late_texts(event_thread: EventThread) -> str:
    """Return a short fact about the comments that were left out; "" for none."""
    count = event_thread.late_texts
    return (
        f"{count} {'comment' if count == 1 else 'comments'} left out: newer than the request"
        if count
        else ""
    )


def _read_at_event(text: ThreadText, event: CiEvent) -> ThreadText | None:
    """Return a comment as it was at the event; None if it can't be told."""
    if text.source == event.source:
        return replace(text, text=event.text)
    # A host gives times in seconds, so a text of the same second may be older or newer.
    return text if math.isinf(event.moment) or text.moment < event.moment else None


def _normalize(text: str) -> str:
    # Hosts store line breaks as the browser sent them, and tell them in one place or the other.
    return "\n".join(text.split("\r\n")).strip()
