"""Selects the entries of a request after a compaction: the summary, the user's own words,
and the recent tail; and computes from what size on a conversation is compacted.

Pure. Before the first compaction all entries are selected.
"""

from msgspec import Struct

from codeloop.model.chat import ModelInfo, TextPiece, UserModelMessage
from codeloop.schema.limits import (
    COMPACT_RESERVE,
    COMPACT_THRESHOLD,
    KEPT_PINS,
    KEPT_PROMPT,
    KEPT_PROMPTS,
)
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    CompactionPart,
    FilePart,
    Part,
    TextPart,
    ToolPart,
    ToolStateCompleted,
)
from codeloop.store.conversation import (
    Entry,
    find_context_start,
    find_first_prompt,
    list_pinned_texts,
)

SUMMARY_TEMPLATE = """The conversation until here was too long and is replaced by this note:

{summary}"""
PINS_TEMPLATE = """What the user pinned, word for word; it still holds:

{pins}"""
PROMPTS_TEMPLATE = """What the user said until then, word for word:

{prompts}"""

DROP_CHECK_STEPS = 8
"""Once in so many steps of a turn it is checked whether to drop outputs,
because that goes through all entries.
"""


class Window(Struct, frozen=True):
    """The selection of entries for a request: all, or those from `start` on without
    the summary and its request.

    `head`: the message that replaces the omitted entries; empty if none are omitted.
    `summary_index`: of the last summary; the message that asked for it is right before it.
    """

    head: tuple[UserModelMessage, ...] = ()
    start: int = 0
    summary_index: int | None = None

    def select(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """Return the entries that are shown; more may have been added at the end
        since the window was made.
        """
        if self.summary_index is None:
            return entries
        return (*entries[self.start : self.summary_index - 1], *entries[self.summary_index + 1 :])


def make_window(entries: tuple[Entry, ...]) -> Window:
    """Select the part of a conversation that a request shows."""
    index = find_last_summary(entries)
    if index is None:
        return Window()
    start = find_context_start(entries)
    text = SUMMARY_TEMPLATE.format(summary=read_own_text(entries[index]))
    pins = select_pins(entries[:start])
    if pins:
        text += "\n\n" + PINS_TEMPLATE.format(pins="\n\n".join(pins))
    prompts = select_prompts(entries[:start])
    if prompts:
        text += "\n\n" + PROMPTS_TEMPLATE.format(prompts="\n\n".join(prompts))
    return Window((UserModelMessage((TextPiece(text),)),), start, index)


def find_last_summary(entries: tuple[Entry, ...], since: int = 0) -> int | None:
    """Return the index of the last completed summary from `since` on;
    the request for it is right before it.
    """
    for index in range(len(entries) - 1, max(since - 1, 0), -1):
        info = entries[index].info
        if (
            isinstance(info, AssistantMessage)
            and info.summary
            and info.error is None
            and info.time.completed
        ):
            return index
    return None


def find_compaction_part(entry: Entry) -> CompactionPart | None:
    """Return the part that makes a user message the request for a summary."""
    return next((part for part in entry.parts if isinstance(part, CompactionPart)), None)


def select_prompts(entries: tuple[Entry, ...]) -> list[str]:
    """Return the user's own words in their order: the prompt that began the newest turn,
    and the newest that fit.

    The first and the newest of them are always there,
    cut in the middle where they are longer than the budget.
    """
    first = find_first_prompt(entries)
    prompts: list[str] = []
    budget = KEPT_PROMPTS.value
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        text = (
            read_own_text(entry)
            if isinstance(entry.info, UserMessage) and not list_pinned_texts(entry)
            else ""
        )
        if not text:
            continue
        is_needed = index == first or not prompts
        budget -= max(len(text), KEPT_PROMPT.value)
        if budget >= 0 or is_needed:
            prompts.append(_cut_middle(text, KEPT_PROMPTS.value))
        if budget < 0 and (first is None or index <= first):
            break
    return prompts[::-1]


def _cut_middle(text: str, length: int) -> str:
    """Return a text with its middle left out where it is longer than `length` characters."""
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def select_pins(entries: tuple[Entry, ...]) -> list[str]:
    """Return the texts that the user has pinned, the newest that fit the budget, in their order."""
    pins: list[str] = []
    budget = KEPT_PINS.value
    for part in reversed([part for entry in entries for part in list_pinned_texts(entry)]):
        budget -= len(part.text)
        if budget < 0:
            break
        pins.append(part.text.strip())
    return pins[::-1]


def read_own_text(entry: Entry) -> str:
    """Return the text of a message, without the parts that codeloop added."""
    return "\n".join(
        part.text for part in entry.parts if isinstance(part, TextPart) and not part.synthetic
    ).strip()


def estimate_size(entry: Entry) -> int:
    """Return roughly how many characters of a request an entry takes."""
    return sum(_estimate_part_size(part) for part in entry.parts)


def _estimate_part_size(part: Part) -> int:
    match part:
        case TextPart(text=text):
            return len(text)
        case ToolPart(state=ToolStateCompleted(output=output, time=time)) if time.compacted is None:
            # 200 for the arguments of the call.
            return len(output) + 200
        case ToolPart():
            # The arguments, and the short text that stands for the result.
            return 400
        case FilePart(url=url):
            return len(url)
        case _:
            return 0


def compute_compaction_threshold(info: ModelInfo, reserved: int | None) -> int | None:
    """Return how many tokens a request may hold before the conversation is compacted;
    None: no limit is known.

    That is `COMPACT_THRESHOLD` per cent of the model's input limit; where it has none, of its
    context less what is kept free for the answer: `reserved`, or the least of the model's output
    limit, `COMPACT_RESERVE` and a quarter of the context.
    """
    total = info.limits.input or info.limits.context
    if not total:
        return None
    answer = reserved or min(
        info.limits.output or COMPACT_RESERVE.value, COMPACT_RESERVE.value, total // 4
    )
    # A limit of the input does not include the answer; a context does.
    return (total - (0 if info.limits.input else answer)) * COMPACT_THRESHOLD.value // 100
