"""The arguments of version 2's operations on sessions, a struct each.
Its docstrings are in the OpenAPI document.
"""

from typing import Any, Literal

import msgspec

from codeloop.schema.message import SessionModel
from codeloop.schema.wire import JSON, Count, Natural, Wire

Delivery = Literal["steer", "queue"]
Order = Literal["asc", "desc"]


class PlaceRef(Wire):
    """A directory."""

    directory: str | None = None


class ListSessions2(Wire):
    """Version 2: sessions of every project by the time of their creation.
    `cursor`: from an earlier answer; `parentID`: the word `null` for those without a parent.
    """

    limit: Count | None = None
    order: Order | None = None
    search: str | None = None
    parent_id: str | None = None
    archived: bool | None = None
    project: str | None = None
    directory: str | None = None
    subpath: str | None = None
    cursor: str | None = None


class Rule2(Wire):
    """A permission rule: an action such as `shell`, the resources that it is about,
    and its effect.
    """

    action: str
    effect: Literal["allow", "ask", "deny"]
    resource: str = "*"


class CreateSession2(Wire):
    """Version 2: makes a session, whose rules are `permissions`.
    With an id that a session has already, that one is returned.
    """

    id: str | None = None
    parent_id: str | None = None
    title: str | None = None
    metadata: JSON | None = None
    permissions: list[Rule2] | None = None
    agent: str | None = None
    model: SessionModel | None = None
    location: PlaceRef | None = None


class UpdateSession2(Wire):
    """Version 2: changes the given fields of a session."""

    session_id: str
    title: str | None = None
    metadata: JSON | None = None
    permissions: list[Rule2] | None = None
    archived: bool | None = None


class SessionId2(Wire):
    """Version 2: names a session."""

    session_id: str


class SwitchAgent(Wire):
    """Version 2: names the agent of the next turns."""

    session_id: str
    agent: str


class SwitchModel(Wire):
    """Version 2: names the model of the next turns."""

    session_id: str
    model: SessionModel


class ForkSession2(Wire):
    """Version 2: copies a session, or its messages before one."""

    session_id: str
    before: str | None = None


class MoveSession2(Wire):
    """Version 2: moves a session to another directory of the same work tree."""

    session_id: str
    directory: str
    delivery: Delivery | None = None


class PromptFile(Wire):
    """A file of a prompt."""

    uri: str
    name: str | None = None
    description: str | None = None


class PromptAgent(Wire):
    """A subagent that a prompt names."""

    name: str


class PromptSkill(Wire):
    """A skill that a prompt names."""

    id: str


class Attachments(Wire):
    """What a prompt brings besides its text."""

    files: list[PromptFile] = []
    agents: list[PromptAgent] = []
    skills: list[PromptSkill] = []


class PreviewPrompt(Attachments, kw_only=True):
    """A prompt of the preview of version 2."""

    text: str


class Prompt2(Attachments, kw_only=True):
    """Version 2: stores a prompt and, unless `resume` is false, begins a turn. While one runs,
    `steer` enters it at its next step, and `queue` waits for its end.
    In place of `text`, the preview of version 2 sends an object `prompt`.
    """

    session_id: str
    text: str | None = None
    prompt: PreviewPrompt | None = None
    id: str | None = None
    metadata: JSON | None = None
    delivery: Delivery | None = None
    resume: bool | None = None


class Synthetic2(Wire):
    """Version 2: stores a text for the model that the user has not typed."""

    session_id: str
    text: str
    id: str | None = None
    description: str | None = None
    metadata: JSON | None = None
    delivery: Delivery | None = None
    resume: bool | None = None


class Command2(Attachments, kw_only=True):
    """Version 2: starts a turn by a command. `text`: what was typed after its name."""

    session_id: str
    name: str
    text: str = ""
    delivery: Delivery | None = None


class Skill2(Wire):
    """Version 2: hands a skill to the model."""

    session_id: str
    id: str
    resume: bool | None = None


class Shell2(Wire):
    """Version 2: runs a command line of the user in a session."""

    session_id: str
    command: str
    id: str | None = None


class Compact2(Wire):
    """Version 2: replaces the conversation in later requests by a summary."""

    session_id: str
    id: str | None = None
    delivery: Delivery | None = None


class InboxId(Wire):
    """Version 2: names a prompt that no turn has taken yet."""

    session_id: str
    inbox_id: str


class ChangeInbox(Wire):
    """Version 2: changes how a prompt enters a turn."""

    session_id: str
    inbox_id: str
    delivery: Delivery


class Interrupt2(Wire):
    """Version 2: ends the turn that runs. `resume`: begins one for what waits."""

    session_id: str
    resume: bool = False


class StageRevert(Wire):
    """Version 2: reverts the messages from a message on, and the files that were changed since."""

    session_id: str
    message_id: str
    files: bool | None = None


class MessageId2(Wire):
    """Version 2: names a message of a session."""

    session_id: str
    message_id: str


class ListMessages2(Wire):
    """Version 2: messages of a session, of one `type` or of all.
    `cursor`: from an earlier answer.
    """

    session_id: str
    limit: Count | None = None
    order: Order | None = None
    cursor: str | None = None
    type: str | None = None


class DiffSession2(Wire):
    """Version 2: what the turn of the prompt `from` changed, or all turns."""

    session_id: str
    start: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    context: Natural | None = None


class ImportSession2(Wire):
    """Version 2: a session as its export gives it."""

    info: JSON
    messages: list[JSON]


class ExportSession2(Wire):
    """Version 2: names a session that is exported; `sanitize`: secrets are hidden."""

    session_id: str
    sanitize: bool = False


class Stats2(Wire):
    """Version 2: asks for sums of the use, of one `project` or of all.
    `from`, `to`: ms since the epoch.
    """

    start: float | None = msgspec.field(default=None, name="from")
    to: float | None = None
    project: str | None = None
    timezone: str | None = None
    tools: Literal["none", "summary", "detail"] | None = None


class Generate2(Wire):
    """Version 2: asks the session's model something, without a trace in the session."""

    session_id: str
    prompt: str


class View2(Wire):
    """Version 2: notes that a client has shown the end of a session."""

    session_id: str
    idle: float


class Environment2(Wire):
    """Version 2: variables of the commands of a session."""

    session_id: str
    variables: dict[str, str]


class InstructionKey(Wire):
    """Version 2: names an instruction of a session."""

    session_id: str
    key: str


class PutInstruction(Wire):
    """Version 2: sets an instruction that the model gets with each prompt of a session."""

    session_id: str
    key: str
    value: Any


class FollowLog(Wire):
    """Version 2: reads the durable events of a session, after a number; `follow`: new ones too."""

    session_id: str
    after: int | None = None
    follow: bool = False
