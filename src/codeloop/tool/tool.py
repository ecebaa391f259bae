"""The types of tools: `Tool` and `BuiltinTool`, the result and the error of a call,
and the context that a call gets.

A tool is a value: name, description, parameters and one async function.
The decorator `tool` makes one of a function.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from sys import modules
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.lazy import load_object
from codeloop.kit.text.truncate import Keep
from codeloop.model.chat import ToolSpec
from codeloop.schema.installation import check_package_file
from codeloop.schema.message import ModelRef
from codeloop.schema.part import FilePart
from codeloop.schema.permission import Need, PermissionRule, Trait
from codeloop.schema.wire import JSON
from codeloop.tool.call_session import CallSession
from codeloop.tool.json_schema import (
    drop_unsent,
    make_parameters_schema,
    name_properties,
    rename_properties,
)
from codeloop.tool.services import ToolServices
from codeloop.workspace.workspace import Workspace


class Traits(Struct, frozen=True):
    """Properties of a tool that decide how its calls are run.

    `concurrent`: calls may run at the same time as other calls of their step. Any other call waits
    for all earlier calls of the step, and later calls wait for it.

    `keep`: the end of an over-long output that the model is shown. `permission`: the tool's name in
    permission rules; empty: its own name. `need_traits`: traits of every permission
    that its calls need.
    """

    concurrent: bool = False
    keep: Keep = "head"
    permission: str = ""
    need_traits: tuple[Trait, ...] = ()


_PACKAGE_FOLDER = Path(__file__).parents[1]
NO_TRAITS = Traits()
CONCURRENT_TRAITS = Traits(concurrent=True)
"""Tools that change nothing may run at the same time as others."""
TURN_ENDED_KEY = "turnEnded"
"""The metadata key for the reason that a hook gave for ending the turn with this call."""
EDIT_TOOLS = frozenset({"edit", "multiedit", "write", "apply_patch"})
"""The built-in tools that change files of the project, in whatever form the change is given."""


class ToolResult(Struct, frozen=True):
    """The result of a call: `output` is for the model, `metadata` for user interfaces.

    `is_bounded`: the tool has cut the output to its own limit, and the output says how to read on.
    """

    title: str
    output: str
    metadata: JSON = struct_field(default_factory=dict[str, Any])
    attachments: tuple[FilePart, ...] = ()
    is_bounded: bool = False


class Subtask(Struct, frozen=True):
    """A task for a subagent. `session_id`: an earlier subagent's session to continue;
    `background`: do not wait.

    `model`: overrides the models of the agent and of the session.
    `format`: the format of the answer, as in prompts.
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
    """A call failed. The message says why; `advice` suggests an alternative to the model,
    and is not shown to users.
    """

    def __init__(self, message: str, metadata: JSON | None = None, *, advice: str = "") -> None:
        super().__init__(message)
        self.metadata = metadata
        self.advice = advice


class HasAdvice(Protocol):
    """An error that may carry advice for the model."""

    @property
    def advice(self) -> str:
        """What the model should do about the error; empty: no advice. Users are not shown it."""
        ...


def format_for_model(error: HasAdvice) -> str:
    """Return an error's message followed by its advice for the model."""
    return f"{error} {error.advice}" if error.advice else str(error)


class ToolContext(Protocol):
    """What a running tool may use: its session, the work tree, shared services,
    and the ways to ask and to report.

    It has at most nine members and none is optional, so that a tool is easy to run in a test.
    """

    session_id: str
    message_id: str
    call_id: str
    workspace: Workspace
    session: CallSession

    @property
    def services(self) -> ToolServices:
        """The services that the tools of a project share."""
        ...

    async def ask(self, *needs: Need) -> bool:
        """Wait until all needs are permitted; return whether the user was asked.
        Raises Denied or Rejected.
        """
        ...

    def report(self, *, title: str | None = None, metadata: JSON | None = None) -> None:
        """Show progress to every client; throttled."""
        ...

    async def spawn(self, task: Subtask) -> SubtaskResult:
        """Run a subagent in a session of its own; wait for it unless it works in the background."""
        ...


ToolFunction = Callable[[Any, ToolContext], Awaitable[ToolResult]]
DescriptionBuilder = Callable[..., str | None]
"""Takes the rulesets of a session and returns a tool's description for it;
None: the tool is not offered.
"""


class ExternalParameters(Struct, frozen=True):
    """The `params` of an external tool, which validates its own arguments: see `Tool.schema`."""


class Tool(Struct, frozen=True):
    """A named function that the model may call."""

    name: str
    description: str
    params: type[msgspec.Struct]
    run: ToolFunction
    traits: Traits = NO_TRAITS
    build_description: DescriptionBuilder | None = None
    """Builds the description for a session, in place of `description`;
    None: it is the same for all sessions.
    """
    schema: JSON | None = None
    """The parameter schema of an external tool, which validates its own arguments: `run`
    then gets the raw object.
    """
    origin: str = ""
    """Who brings an external tool, for messages: see `ToolSpec.origin`."""

    @property
    def permission(self) -> str:
        """The tool's name in permission rules."""
        return self.traits.permission or self.name

    @property
    def need_traits(self) -> tuple[Trait, ...]:
        """The traits of all permission needs of its calls."""
        return self.traits.need_traits

    @property
    def parameters(self) -> JSON:
        """The JSON schema of its arguments, with the parameters that models are not told of."""
        return make_parameters_schema(self.params) if self.schema is None else self.schema

    @property
    def spec(self) -> ToolSpec:
        """The name, the description and the parameter schema,
        as requests to models contain them.
        """
        parameters = (
            drop_unsent(self.parameters)
            if self.schema is None
            else rename_properties(self.schema, name_properties(self.schema))
        )
        return ToolSpec(self.name, self.description, parameters, self.origin)

    @property
    def implementation(self) -> "Tool":
        """The tool itself: unlike a `BuiltinTool` it needs no loading."""
        return self


class BuiltinTool(Struct, frozen=True):
    """The table row of a built-in tool. The tool's own module is only imported at the first call,
    for a fast start.

    `target`: where the `Tool` is, as `room.module:name`. `permission`: its name in permission
    rules. `parameters`: the JSON schema of its arguments,
    with the parameters that models are not told of.
    """

    name: str
    target: str
    permission: str
    parameters: JSON
    build_description: DescriptionBuilder | None = None
    need_traits: tuple[Trait, ...] = ()

    @property
    def description(self) -> str:
        """The content of `<name>.md` in the folder of the tool's module."""
        *folders, _ = self.target.partition(":")[0].split(".")
        return read_description(_PACKAGE_FOLDER.joinpath(*folders), self.name)

    @property
    def spec(self) -> ToolSpec:
        """The name, the description and the parameter schema,
        as requests to models contain them.
        """
        return ToolSpec(self.name, self.description, drop_unsent(self.parameters))

    @property
    def implementation(self) -> Tool:
        """The `Tool` of this row; its module is imported now."""
        implementation: Tool = load_object(self.target)
        return implementation


def tool(
    name: str,
    *,
    params: type[msgspec.Struct],
    traits: Traits = NO_TRAITS,
    description: str | None = None,
    build_description: DescriptionBuilder | None = None,
) -> Callable[[ToolFunction], Tool]:
    """Decorate an async function to make it a `Tool`.

    By default the description is the file `<name>.md` in the folder of the function's module.
    """

    def build(run: ToolFunction) -> Tool:
        text = description
        if text is None:
            text = read_description(Path(str(modules[run.__module__].__file__)).parent, name)
        return Tool(name, text, params, run, traits, build_description)

    return build


def read_description(folder: Path, name: str) -> str:
    """Return the description of a tool whose module is in `folder`."""
    return check_package_file(folder / f"{name}.md").read_text(encoding="utf-8").strip()
