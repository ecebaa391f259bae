"""Sessions and messages, as they are stored and sent. The parts of a message are in `part.py`."""

from typing import Any, Literal

import msgspec

from codeloop.schema.errors import MessageError
from codeloop.schema.permission import PermissionRule
from codeloop.schema.turn_facts import TurnFacts
from codeloop.schema.wire import JSON, Wire


class CacheTokens(Wire):
    """Tokens read from and written to the provider's prompt cache;
    `hour_write`: of `write`, what is kept an hour.
    """

    read: int
    write: int
    hour_write: int = 0


class Tokens(Wire):
    """Token counts of one step or their sum; `input` excludes cached ones,
    `output` includes `reasoning`.

    `estimated`: how many of these no service has counted; None: all were counted. `tier`: the
    service's word for a price other than the standard one (`flex`, `priority`, `batch`).
    """

    input: int
    output: int
    reasoning: int
    cache: CacheTokens
    total: int | None = None
    estimated: int | None = None
    tier: str = ""

    @property
    def all(self) -> int:
        """The number of tokens that the context held after the step: input,
        output and both cache counts.
        """
        return self.context + self.output

    @property
    def context(self) -> int:
        """The number of tokens that the request held: input and both cache counts."""
        return self.input + self.cache.read + self.cache.write

    def plus(self, other: "Tokens", times: int = 1) -> "Tokens":
        """Return the sums without `total`; with `times=-1` the differences, never below 0."""
        return Tokens(
            input=max(self.input + times * other.input, 0),
            output=max(self.output + times * other.output, 0),
            reasoning=max(self.reasoning + times * other.reasoning, 0),
            cache=CacheTokens(
                read=max(self.cache.read + times * other.cache.read, 0),
                write=max(self.cache.write + times * other.cache.write, 0),
                hour_write=max(self.cache.hour_write + times * other.cache.hour_write, 0),
            ),
            estimated=max((self.estimated or 0) + times * (other.estimated or 0), 0) or None,
            tier=self.tier or other.tier,
        )


NO_TOKENS = Tokens(input=0, output=0, reasoning=0, cache=CacheTokens(read=0, write=0))


class SessionModel(Wire):
    """The model that a session uses; note `id` here and `modelID` in messages."""

    id: str
    provider_id: str
    variant: str | None = None


class ModelRef(Wire):
    """A model named inside a message or a request."""

    provider_id: str
    model_id: str
    variant: str | None = None


FORK_KEY = "fork"
"""The metadata key of a fork's origin: `sessionID`, and `messageID`,
the first message that was not copied.
"""
MOVED_KEY = "moved"
"""The metadata key of a session that was moved elsewhere: `to`, the exported file, and `at`,
ms since 1970.
"""
GOAL_KEY = "goal"
"""The metadata key of a session's latest goal: `text`, `checks`, `status` (`working`, `done`,
`not_done`), `rounds`, `left` and `reason`. Where no turn runs,
one that is `working` was interrupted.
"""
OWN_PREFIX = "codeloop."
"""How the metadata keys begin that no client sets: only operations of their own do."""
ENVIRONMENT_KEY = f"{OWN_PREFIX}environment"
"""The metadata key of the variables that a client has set for a session's commands."""
NO_VARIANT = "default"
"""What clients call the variant of a model when none was chosen."""


def drop_own_keys(metadata: JSON) -> JSON:
    """Return a client's metadata without the keys of `OWN_PREFIX`."""
    return {name: value for name, value in metadata.items() if not name.startswith(OWN_PREFIX)}


def format_model_ref(model: ModelRef) -> str:
    """Format a model as `provider/model`, without its variant."""
    return f"{model.provider_id}/{model.model_id}"


def parse_model_name(name: str | None) -> ModelRef | None:
    """Return the model that `PROVIDER/MODEL` names; None for a name of another form."""
    provider_id, _, model_id = (name or "").partition("/")
    return (
        ModelRef(provider_id=provider_id, model_id=model_id) if provider_id and model_id else None
    )


def parse_model_ref(ref: str) -> ModelRef:
    """Parse `provider/model`; the model's part may contain slashes.
    Unlike `parse_model_name` it takes any text.
    """
    provider_id, _, model_id = ref.partition("/")
    return ModelRef(provider_id=provider_id, model_id=model_id)


class SessionTime(Wire):
    """Milliseconds since the epoch."""

    created: int
    updated: int
    compacting: int | None = None
    archived: int | None = None


class SnapshotFileDiff(Wire):
    """How one file changed; `patch` is unified diff text."""

    additions: int
    deletions: int
    file: str | None = None
    patch: str | None = None
    status: Literal["added", "deleted", "modified"] | None = None


class SessionSummary(Wire):
    """Lines and files that the session changed."""

    additions: int
    deletions: int
    files: int
    diffs: list[SnapshotFileDiff] | None = None


class Share(Wire):
    """The address where a shared session can be read."""

    url: str


class Revert(Wire):
    """The point that a session was reverted to, and what is needed to undo that.
    No `diff`: it was not finished.
    """

    message_id: str
    part_id: str | None = None
    snapshot: str | None = None
    diff: str | None = None


class Session(Wire):
    """One conversation in one directory.

    `cost` (dollars) and `tokens` are what its answers, its title and its subagents have used. What
    a final undo removes leaves them again; the ledger of the store keeps what was paid.
    """

    id: str
    slug: str
    project_id: str
    directory: str
    title: str
    version: str
    time: SessionTime
    path: str | None = None
    parent_id: str | None = None
    workspace_id: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    summary: SessionSummary | None = None
    share: Share | None = None
    metadata: JSON | None = None
    permission: list[PermissionRule] | None = None
    revert: Revert | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The variables that a client has set for the session's commands."""
        variables: JSON = (self.metadata or {}).get(ENVIRONMENT_KEY) or {}
        return {name: value for name, value in variables.items() if isinstance(value, str)}

    @property
    def root(self) -> str:
        """The top of the work tree that it works in: its directory without its path."""
        return (
            (self.directory.removesuffix(self.path).rstrip("/") or "/")
            if self.path
            else self.directory
        )


def count_used_tokens(session: Session) -> int:
    """Return how many tokens a session has used, of any kind."""
    return session.tokens.all if session.tokens else 0


def measure_growth(before: Session, after: Session) -> tuple[Tokens, float]:
    """Return the tokens and the dollars by which a session's sums have grown;
    never less than nothing.
    """
    cost = max((after.cost or 0.0) - (before.cost or 0.0), 0.0)
    return (after.tokens or NO_TOKENS).plus(before.tokens or NO_TOKENS, -1), cost


def describe_relocation(session: Session) -> str:
    """Return a text that says where a session was moved and how to continue it here;
    empty if it was not moved.
    """
    moved = (session.metadata or {}).get(MOVED_KEY)
    if not isinstance(moved, dict):
        return ""
    target = msgspec.convert(moved, JSON).get("to")
    return (
        f"This session was moved to {target} and goes on where that file is imported. "
        f"To go on here instead: codeloop session move {session.id} --cancel"
    )


class UserTime(Wire):
    """Milliseconds since the epoch."""

    created: int


class AssistantTime(Wire):
    """Milliseconds since the epoch; without `completed` the message is still being written."""

    created: int
    completed: int | None = None


class UserSummary(Wire):
    """The files that the turn of this message has changed."""

    diffs: list[SnapshotFileDiff]
    title: str | None = None
    body: str | None = None


class MessagePath(Wire):
    """Where the step ran: working directory and root of the work tree, absolute."""

    cwd: str
    root: str


class UserMessage(Wire, tag_field="role", tag="user"):
    """A prompt by the user, or by the program in the user's name."""

    id: str
    session_id: str
    time: UserTime
    agent: str
    model: ModelRef
    summary: UserSummary | None = None
    format: JSON | None = None
    system: str | None = None
    tools: dict[str, bool] | None = None


class AssistantMessage(Wire, tag_field="role", tag="assistant"):
    """One step: one request to the model, and its answer.

    `cost` in dollars; it includes `retried`, which failed tries of the request have
    used and `tokens` leaves out.
    `summary`: whether it is the summary of a compaction. `finish`: why the answer ended.
    `structured`: the answer as JSON of the schema that its prompt has asked for.
    """

    id: str
    session_id: str
    parent_id: str
    model_id: str
    provider_id: str
    mode: str
    agent: str
    path: MessagePath
    cost: float
    tokens: Tokens
    time: AssistantTime
    variant: str | None = None
    summary: bool | None = None
    finish: str | None = None
    error: MessageError | None = None
    structured: Any = None
    retried: Tokens | None = None
    facts: TurnFacts | None = None
    """Of the last step of a turn: what the whole turn did to the project."""

    @property
    def all_tokens(self) -> Tokens:
        """The tokens that the step has used, with its failed tries."""
        return self.tokens.plus(self.retried or NO_TOKENS)


Message = UserMessage | AssistantMessage


class Todo(Wire):
    """One line of the task list that the model keeps."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Literal["high", "medium", "low"]
