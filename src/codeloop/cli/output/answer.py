"""What the model says in a turn, and which of it is the answer."""

from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import TextPart

UNFINISHED = {None, "tool-calls", "cut"}
"""How a step ends that another one follows."""


class Answer:
    """Keeps the texts of each answer, without summaries of the conversation and without what a retry took back.

    `prompt_id`: the message that is to be answered; None: whatever is answered counts.
    """

    def __init__(self, prompt_id: str | None = None) -> None:
        self.final: str | None = None
        """The answer, when it is complete; the newest one, unless a single prompt is to be answered."""
        self._prompt_id = prompt_id
        self._prompts: set[str] = set()
        self._texts: dict[str, dict[str, str]] = {}
        self._whole: set[str] = set()

    @property
    def text(self) -> str:
        """The answer, else what was said last."""
        said = (self.of(message_id) for message_id in reversed(self._texts))
        return self.final or next(filter(None, said), "")

    def of(self, message_id: str) -> str:
        """Return what one message says."""
        return "\n".join(text.removesuffix("\n") for text in self._texts.get(message_id, {}).values() if text)

    def take(self, event: Event) -> bool:
        """Take in an event of the session; true when it completes the answer."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                if self._prompts or self._prompt_id in {None, p.info.id}:
                    self._prompts.add(p.info.id)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                return self._message(p.info)
            case PartUpdated(properties=p) if isinstance(p.part, TextPart) and p.part.message_id in self._texts:
                self._texts[p.part.message_id][p.part.id] = p.part.text
            case PartRemoved(properties=p) if p.message_id in self._texts:
                self._texts[p.message_id].pop(p.part_id, None)
            case _:
                pass
        return False

    def _message(self, info: AssistantMessage) -> bool:
        if info.summary or info.id in self._whole:
            return False
        self._texts.setdefault(info.id, {})
        if info.time.completed is None:
            return False
        self._whole.add(info.id)
        is_last = info.error is None and info.finish not in UNFINISHED
        if not is_last or (self._prompt_id is not None and (self.final or info.parent_id not in self._prompts)):
            return False
        self.final = self.of(info.id)
        return True
