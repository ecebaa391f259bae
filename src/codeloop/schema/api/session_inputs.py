"""Inputs of a session: prompts, commands, answers to questions; and the end of a turn."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from codeloop.schema.api.goal import Goal, GoalEnd
from codeloop.schema.message import Message, ModelRef
from codeloop.schema.part import FilePartSource, FilePartSourceText, Part
from codeloop.schema.permission import Reply
from codeloop.schema.wire import JSON, Natural, Wire


class TextPartInput(Wire, tag_field="type", tag="text"):
    """Text of a prompt."""

    text: str
    id: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None
    metadata: JSON | None = None


class FilePartInput(Wire, tag_field="type", tag="file"):
    """An attachment of a prompt: `data:` or `file://` URL."""

    mime: str
    url: str
    id: str | None = None
    filename: str | None = None
    source: FilePartSource | None = None


class AgentPartInput(Wire, tag_field="type", tag="agent"):
    """A mention of an agent in a prompt."""

    name: str
    id: str | None = None
    source: FilePartSourceText | None = None


class SubtaskPartInput(Wire, tag_field="type", tag="subtask"):
    """Work that goes straight to a subagent, before the model is asked."""

    prompt: str
    description: str
    agent: str
    id: str | None = None
    model: ModelRef | None = None
    command: str | None = None


PartInput = TextPartInput | FilePartInput | AgentPartInput | SubtaskPartInput


class BudgetShare(Wire):
    """A limit in dollars for all turns of this server with the same id together."""

    id: str
    cost: float


class RunLimits(Wire):
    """Limits of the turn: requests to the model, dollars, tokens."""

    steps: Natural | None = None
    cost: float | None = None
    tokens: Natural | None = None
    budget: BudgetShare | None = None
    compact: bool = True
    """False: don't compact automatically, but stop when the context is full."""
    attended: bool = True
    """False: nobody can answer, so the model does not get the tool that asks questions."""


class Prompt(Wire):
    """Sends a prompt to a session. Model and agent: as given, else the session's last, else the configured ones."""

    session_id: str
    parts: Sequence[PartInput]
    message_id: str | None = None
    model: ModelRef | None = None
    agent: str | None = None
    variant: str | None = None
    no_reply: bool = False
    system: str | None = None
    tools: dict[str, bool] | None = None
    format: JSON | None = None
    limits: RunLimits | None = None
    goal: Goal | None = None


class InvokeCommand(Wire):
    """Runs a command by name. `arguments`: what was typed after it; `model`: `provider/model`."""

    session_id: str
    command: str
    arguments: str = ""
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    message_id: str | None = None
    parts: list[FilePartInput] = []
    format: JSON | None = None
    limits: RunLimits | None = None


class RunShell(Wire):
    """Runs a command line that the user (not the model) types; it becomes a message that the model sees later.

    `sandboxed`: as the model's commands are, for a line that runs what a model has written.
    """

    session_id: str
    command: str
    agent: str | None = None
    model: ModelRef | None = None
    message_id: str | None = None
    sandboxed: bool = False


class InitSession(Wire):
    """Has the model write the project's AGENTS.md."""

    session_id: str
    provider_id: str
    model_id: str
    message_id: str


class Summarize(Wire):
    """Replaces the conversation in later requests by a summary; nothing is deleted."""

    session_id: str
    provider_id: str
    model_id: str
    auto: bool = False


class AnswerPermission(Wire):
    """Answers a question; `message` goes to the model with a rejection, and the turn then goes on.

    Beyond OpenCode's API: `always` is remembered instead of the patterns that were offered. `wider`: the user has
    seen that it allows more than those; without it, it must not.
    """

    request_id: str
    reply: Reply
    message: str | None = None
    always: list[str] | None = None
    wider: bool = False


class RespondPermission(Wire):
    """Answers a question; the older form."""

    session_id: str
    permission_id: str
    response: Reply


class AnswerQuestion(Wire):
    """Answers a question: for each of its questions the labels or free texts that were chosen."""

    request_id: str
    answers: list[list[str]]


class RejectQuestion(Wire):
    """Refuses to answer; with `message` the turn goes on."""

    request_id: str
    message: str | None = None


class TurnEnd(Wire):
    """Why a turn ended; `message` says it in a line. `context_window`: of the model, in tokens; 0: unknown.

    `goal`: how far the work came, if the prompt had one. Where nobody was there, `test_changes` says how tests changed
    that were there before, a phrase each, and `has_unchecked_edits` that files changed and none of the project's checks
    ran.
    """

    reason: str
    message: str = ""
    context_window: int = 0
    goal: GoalEnd | None = None
    test_changes: tuple[str, ...] = ()
    has_unchecked_edits: bool = False


class MessageWithParts(Wire):
    """A message and its parts; after a prompt also how the turn ended."""

    info: Message
    parts: list[Part]
    stop: TurnEnd | None = None


class ClientTool(Wire):
    """A tool that a client carries out. `parameters`: a JSON Schema of an object.

    `read_only`: it changes nothing, so calls may run in parallel, and the profile `plan` allows them.
    """

    # The names that model services accept for tools.
    name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    description: str
    parameters: JSON
    read_only: bool = False


class OfferTools(Wire):
    """Offers tools to a session from its next turn on, replacing those offered under this id before.

    OpenCode's API has no such tools. The client chooses `lease_id`. The offer ends unless it is made again in time.
    """

    session_id: str
    lease_id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{8,64}$")]
    tools: Annotated[list[ClientTool], msgspec.Meta(max_length=128)]


class ClientToolCall(Wire):
    """A call that a client must carry out (`called`), or no longer has to (`ended`). Paths are absolute."""

    request_id: str
    lease_id: str
    state: Literal["called", "ended"]
    session_id: str
    message_id: str
    call_id: str
    agent: str
    tool: str
    arguments: JSON
    directory: str
    worktree: str


class ToolsOffered(Wire):
    """Until when tools are offered (ms since the epoch), and the calls that wait for the client."""

    until: int
    calls: list[ClientToolCall]


class WithdrawTools(Wire):
    """Ends an offer of tools, and the calls that wait for the client."""

    session_id: str
    lease_id: str


class AnswerToolCall(Wire):
    """Answers a call: with its result, or with an `error` that the model reads."""

    session_id: str
    lease_id: str
    request_id: str
    output: str = ""
    title: str = ""
    metadata: JSON = {}
    attachments: list[FilePartInput] = []
    error: str | None = None


class AskForToolCall(Wire):
    """Asks for permission for what a call is about to do: the rules decide, or the user if they say so."""

    session_id: str
    lease_id: str
    request_id: str
    permission: str
    patterns: Annotated[list[str], msgspec.Meta(min_length=1)]
    always: list[str] = []
    metadata: JSON = {}


class ToolPermission(Wire):
    """Whether it is allowed; if not, `message` says why, and the call has ended."""

    allowed: bool
    message: str = ""


class ReportToolCall(Wire):
    """Shows the progress of a call."""

    session_id: str
    lease_id: str
    request_id: str
    title: str | None = None
    metadata: JSON = {}
