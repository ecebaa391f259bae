"""Inputs of a session: prompts with their goals and limits, commands, answers to questions;
and the end of a turn.
"""

from collections.abc import Sequence
from typing import Literal

from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.message import Message, ModelRef
from codeloop.schema.operation import Operation
from codeloop.schema.part import FilePartSource, FilePartSourceText, Part
from codeloop.schema.turn_facts import TurnFacts
from codeloop.schema.wire import JSON, Count, Natural, Wire


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
    directories: list[str] = []
    """Absolute paths of further directories that tools may use in this turn without a question,
    like the project.
    """


class Goal(Wire):
    """What a prompt must reach: its checks exit with 0;
    without checks a model judges what the turn's commands show.

    OpenCode's API has no goals. `checks`: command lines. `protect`, `unprotect`: globs of further
    files that a check consists of, and of those that may be changed. `rounds`: how often the model
    is told to continue, at most.
    """

    checks: list[str] = []
    protect: list[str] = []
    unprotect: list[str] = []
    rounds: Count | None = None


class Prompt(Wire):
    """Sends a prompt to a session. Model and agent: as given, else the session's last,
    else the configured ones.
    """

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
    """Runs a command line that the user (not the model) types;
    it becomes a message that the model sees later.

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


class GoalCheck(Wire):
    """A check as it was run last, after the last edit. `problem`: why it does not count as passed;
    empty: it did.

    `exit_code`: None if the check was stopped, as by its timeout.
    """

    command: str
    exit_code: int | None
    problem: str = ""


class GoalEnd(Wire):
    """Whether a goal was reached.

    `left`: what is missing, a phrase each; `reason`: why the work ended before it was reached.
    """

    status: Literal["done", "not_done"]
    rounds: int
    checks: list[GoalCheck] = []
    left: list[str] = []
    reason: str = ""


class TurnEnd(Wire):
    """Why a turn ended; `message` says it in a line. `context_window`: of the model, in tokens;
    0: unknown.

    `goal`: how far the work came, if the prompt had one. Where nobody was there, `test_changes`
    says how tests changed that were there before, a phrase each, and `has_unchecked_edits` that
    files changed and none of the project's checks ran. `unended_commands`: those that did not end
    within their timeout, and still run.
    """

    reason: str
    message: str = ""
    context_window: int = 0
    goal: GoalEnd | None = None
    test_changes: tuple[str, ...] = ()
    has_unchecked_edits: bool = False
    unended_commands: tuple[str, ...] = ()
    facts: TurnFacts | None = None
    """What the turn did to the project; None: it made no calls, or was ended from outside."""


class MessageWithParts(Wire):
    """A message and its parts; after a prompt also how the turn ended."""

    info: Message
    parts: list[Part]
    stop: TurnEnd | None = None


PROMPT = Operation(
    "session.prompt",
    "POST",
    "/session/{sessionID}/message",
    Prompt,
    MessageWithParts,
    "session.prompt:run_prompt",
)
PROMPT_ASYNC = Operation(
    "session.prompt_async",
    "POST",
    "/session/{sessionID}/prompt_async",
    Prompt,
    type(None),
    "session.prompt:start_prompt",
)
COMMAND = Operation(
    "session.command",
    "POST",
    "/session/{sessionID}/command",
    InvokeCommand,
    MessageWithParts,
    "session.command:run_command",
)
SUMMARIZE = Operation(
    "session.summarize",
    "POST",
    "/session/{sessionID}/summarize",
    Summarize,
    bool,
    "session.prompt:summarize_session",
)
ABORT = Operation(
    "session.abort",
    "POST",
    "/session/{sessionID}/abort",
    SessionId,
    bool,
    "session.prompt:abort_turn",
)
SESSION_SHELL = Operation(
    "session.shell",
    "POST",
    "/session/{sessionID}/shell",
    RunShell,
    MessageWithParts,
    "session.shell:run_shell_command",
)
SESSION_INIT = Operation(
    "session.init",
    "POST",
    "/session/{sessionID}/init",
    InitSession,
    bool,
    "session.command:init_project",
)
