"""What those who follow version 2 know of a project's sessions and answers."""

from msgspec import Struct, field

from codeloop.schema.message import AssistantMessage, Session, UserMessage
from codeloop.schema.part import Part


class PartSeen(Struct):
    """A part that clients know. `ordinal`: its number among the texts, or the thoughts,
    of its message; `status`: of a call.
    """

    kind: str
    ordinal: int
    status: str = ""
    is_ended: bool = False


class AnswerSeen(Struct):
    """An answer that is being written. `parts`: by their ids."""

    is_summary: bool = False
    is_ended: bool = False
    parts: dict[str, PartSeen] = field(default_factory=dict[str, PartSeen])

    def number(self, kind: str) -> int:
        """Return the number of the next part of a kind."""
        return sum(1 for each in self.parts.values() if each.kind == kind)


class SessionSeen(Struct):
    """What clients know of a session. `prompt`: a message whose parts are not complete yet;
    `prompts`: the last ones; `inbox`: those that no answer has taken; `reason`: of a summary.
    """

    info: Session | None = None
    prompt: UserMessage | None = None
    prompt_parts: list[Part] = field(default_factory=list[Part])
    prompts: set[str] = field(default_factory=set[str])
    inbox: list[str] = field(default_factory=list[str])
    answers: dict[str, AnswerSeen] = field(default_factory=dict[str, AnswerSeen])
    last_answer: AssistantMessage | None = None
    is_executing: bool = False
    reason: str = "manual"
