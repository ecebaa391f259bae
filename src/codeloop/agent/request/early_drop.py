"""Whether superseded outputs leave a request while the service still has it in its cache, at the model's prices. Pure.

What is left out changes the request from there on: the rest is sent anew once, at the price of writing, and each later
step sends less, at the price of what is read from the cache. It has to pay within a quarter of the steps that the turn
has taken: many turns end before they have taken as many again.
"""

from collections.abc import Collection, Sequence

from codeloop.agent.request.window import size_of
from codeloop.model.chat import Prices
from codeloop.schema.message import UserMessage
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry
from codeloop.tool.superseded_outputs import find_superseded

_SOON = 4
"""The part of the steps so far within which it has to pay."""
_EVERY = 8
"""Steps of a turn after which it is looked at, and after which again: each look goes through all entries."""


def find_worth_dropping(entries: Sequence[Entry], dropped: Collection[str], prices: Prices, now: int) -> list[ToolPart]:
    """Return the tool parts to leave out from now on, marked so (`now`: ms since the epoch); [] where it does not pay.

    `dropped`: the ids of those that requests leave out already.
    """
    steps = _count_steps(entries)
    if not steps or steps % _EVERY or not prices.is_known:
        return []
    ids = find_superseded(entries).keys() - set(dropped)
    places = [index for index, entry in enumerate(entries) if any(part.id in ids for part in entry.parts)]
    if not places:
        return []
    parts = [part for index in places for part in entries[index].parts if isinstance(part, ToolPart) and part.id in ids]
    states = [
        (part, part.state)
        for part in parts
        if isinstance(part.state, ToolStateCompleted) and part.state.time.compacted is None
    ]
    saved = sum(len(state.output) for _, state in states)
    rest = sum(map(size_of, entries[places[0] :])) - saved
    write = prices.cache_write or prices.input
    if rest * (write - prices.cache_read) >= saved * prices.cache_read * steps / _SOON:
        return []
    return [replace(part, state=replace(state, time=replace(state.time, compacted=now))) for part, state in states]


def _count_steps(entries: Sequence[Entry]) -> int:
    """Return how many steps the present turn has taken."""
    count = 0
    for entry in reversed(entries):
        if isinstance(entry.info, UserMessage):
            break
        count += not entry.info.summary
    return count
