"""A tool is a value: name, description, parameters and one async function."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from sys import modules
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.lazy import load
from codeloop.kit.text.truncate import Keep
from codeloop.model.chat import ToolSpec
from codeloop.schema.message import ModelRef
from codeloop.schema.part import FilePart
from codeloop.schema.permission import Need, PermissionRule, Trait
from codeloop.schema.wire import JSON
from codeloop.tool.call_session import CallSession
from codeloop.tool.json_schema import parameters_schema
from codeloop.tool.services import ToolServices
from codeloop.workspace.workspace import Workspace


class Traits(Struct, frozen=True):
    """How a call may be treated.

    `concurrent`: may run beside other calls of its step. Any other call waits for all earlier calls of the step, and
    later calls wait for it.

    `keep`: which end of an over-long output is shown. `permission`: the tool's name in permission rules; empty: its own
    name. `needs`: traits of all permission needs of its calls.
    """

    concurrent: bool = False
    keep: Keep = "head"
    permission: str = ""
    needs: tuple[Trait, ...] = ()


NO_TRAITS = Traits()
READ_ONLY = Traits(concurrent=True)


class ToolResult(Struct, frozen=True):
    """What a call returns: `output` is for the model, `metadata` for the user's screen.

    `is_bounded`: the tool has cut the output to its own limit and says how to continue.
    """

    title: str
    output: str
    metadata: JSON = struct_field(default_factory=dict[str, Any])
    attachments: tuple[FilePart, ...] = ()
    is_bounded: bool = False


ENDED = "turnEnded"
"""Metadata key: a hook's reason for ending the turn with this call."""


class Subtask(Struct, frozen=True):
    """A task for a subagent. `session_id`: an earlier subagent's session to continue; `background`: do not wait.

    `model`: overrides the models of the agent and of the session. `format`: the format of the answer, as in prompts.
    `permission`: rules of the subagent's session, which follow all others.
    """

    agent: str
    description: str
    prompt: str
    session_id: str | None = None
    background: bool = False
    model: ModelRef | None = None
    format: JSON | None = None
    permission: tuple[PermissionRule, ...] = ()


class SubtaskResult(Struct, frozen=True):
    """A subagent's last text, and the session to read it in."""

    session_id: str
    text: str
    metadata: JSON
    state: Literal["running", "completed"] = "completed"


class ToolFailure(Exception):
    """The call can't be done; the text says what happened, `advice` says to the model alone what to do instead."""

    def __init__(self, message: str, metadata: JSON | None = None, *, advice: str = "") -> None:
        super().__init__(message)
        self.metadata = metadata
        self.advice = advice


class HasAdvice(Protocol):
    """An error with advice for the model alone; empty: none."""

    @property
    def advice(self) -> str:
        """What the model should do about the error."""
        ...


def for_model(error: HasAdvice) -> str:
    """Return an error's message followed by its advice for the model."""
    return f"{error} {error.advice}" if error.advice else str(error)


class ToolContext(Protocol):
    """The environment of a running tool. At most nine members, none optional."""

    session_id: str
    message_id: str
    call_id: str
    workspace: Workspace
    session: CallSession

    @property
    def services(self) -> ToolServices:
        """What the tools of the project share."""
        ...

    async def ask(self, *needs: Need) -> bool:
        """Wait until all needs are permitted; return whether the user was asked. Raises Denied or Rejected."""
        ...

    def report(self, *, title: str | None = None, metadata: JSON | None = None) -> None:
        """Show progress to every client; throttled."""
        ...

    async def spawn(self, task: Subtask) -> SubtaskResult:
        """Run a subagent in a session of its own; wait for it unless it works in the background."""
        ...


ToolRun = Callable[[Any, ToolContext], Awaitable[ToolResult]]
Describe = Callable[..., str | None]
"""Takes the rulesets of a session and returns a description that depends on them; None: the tool is not offered."""


class Tool(Struct, frozen=True):
    """A named function that the model may call."""

    name: str
    description: str
    params: type[msgspec.Struct]
    run: ToolRun
    traits: Traits = Traits()
    describe: Describe | None = None
    """Replaces `description` in the spec."""
    schema: JSON | None = None
    """The schema of an external tool, which validates its parameters: `run` then gets the raw object."""

    @property
    def permission(self) -> str:
        """The tool's name in permission rules."""
        return self.traits.permission or self.name

    @property
    def needs(self) -> tuple[Trait, ...]:
        """The traits of all permission needs of its calls."""
        return self.traits.needs

    @property
    def spec(self) -> ToolSpec:
        """What a model is offered."""
        schema = parameters_schema(self.params) if self.schema is None else self.schema
        return ToolSpec(self.name, self.description, schema)

    @property
    def loaded(self) -> "Tool":
        """The tool itself."""
        return self


class BuiltinTool(Struct, frozen=True):
    """The table row of a built-in tool: its spec without its module, which is imported at the first call.

    `target`: the tool itself, `room.module:name`. `permission`: its name in permission rules.
    """

    name: str
    target: str
    permission: str
    parameters: JSON
    describe: Describe | None = None
    needs: tuple[Trait, ...] = ()

    @property
    def description(self) -> str:
        """The content of `<name>.md` beside the tool's module."""
        *folders, _ = self.target.partition(":")[0].split(".")
        return read_description(_PACKAGE.joinpath(*folders), self.name)

    @property
    def spec(self) -> ToolSpec:
        """What a model is offered."""
        return ToolSpec(self.name, self.description, self.parameters)

    @property
    def loaded(self) -> Tool:
        """The tool itself."""
        implementation: Tool = load(self.target)
        return implementation


_PACKAGE = Path(__file__).parents[1]


def tool(
    name: str,
    *,
    params: type[msgspec.Struct],
    traits: Traits = NO_TRAITS,
    description: str | None = None,
    describe: Describe | None = None,
) -> Callable[[ToolRun], Tool]:
    """Build a Tool from the function below it; registers nothing. Its description is `<name>.md` beside its module."""

    def build(run: ToolRun) -> Tool:
        text = description
        if text is None:
            text = read_description(Path(str(modules[run.__module__].__file__)).parent, name)
        return Tool(name, text, params, run, traits, describe)

    return build


def read_description(folder: Path, name: str) -> str:
    """Return the description of a tool whose module is in `folder`."""
    return (folder / f"{name}.md").read_text(encoding="utf-8").strip()
