"""The tools of one project: which are offered, and how calls are parsed and validated."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from codeloop.kit.wildcard import matches
from codeloop.model.chat import ToolSpec
from codeloop.permission.rules import is_offered
from codeloop.schema.limits import TOOL_DEPTH
from codeloop.schema.part import NOTE
from codeloop.schema.permission import Ruleset
from codeloop.schema.wire import JSON, replace
from codeloop.tool.json_schema import signature, without_nulls
from codeloop.tool.tool import BuiltinTool, Tool, ToolContext, ToolResult

_object = msgspec.json.Decoder(JSON).decode

_PATCH_MODELS = ("gpt-5*", "gpt-6*", "*/gpt-5*", "*/gpt-6*", "*openai.gpt-5*", "*openai.gpt-6*", "*codex*")
"""Models trained to change files by patches; all others get `edit` and `write`."""

_PATCH_TOOLS = frozenset({"apply_patch"})
_EDIT_TOOLS = frozenset({"edit", "multiedit", "write"})


class PreparedCall(Struct, frozen=True):
    """A call that can run: the tool, its arguments as a struct, and the JSON object they came from."""

    tool: Tool
    params: msgspec.Struct | JSON
    input: JSON
    note: str = ""
    """Notes for the model on repaired arguments."""
    hooked: Literal["ask", "allow"] | None = None
    """An extension's verdict on its permission."""

    async def run(self, ctx: ToolContext) -> ToolResult:
        """Run the call."""
        result = await self.tool.run(self.params, ctx)
        if not self.note:
            return result
        note = f"(Note: {self.note}.)"
        output = result.output.rstrip("\n") + f"\n\n{note}"
        return replace(result, output=output, metadata={**result.metadata, NOTE: note})


class InvalidToolCall(Struct, frozen=True):
    """A call that can't run, and why; `input` is its JSON object, if any.

    `unusable`: unknown tool, or arguments that are no JSON object; shown as the tool `invalid`.
    """

    reason: str
    input: JSON
    unusable: bool
    advice: str = ""
    """For the model alone: how the tool is called."""

    def __str__(self) -> str:
        """Return the text for the model."""
        return f"{self.reason} {self.advice}" if self.advice else self.reason


AnyTool = Tool | BuiltinTool
Fit = Callable[[tuple[ToolSpec, ...], int], tuple[ToolSpec, ...]]
Find = Callable[[str], Tool | None]


def _offer_all(specs: tuple[ToolSpec, ...], _window: int) -> tuple[ToolSpec, ...]:
    return specs


def _find_nothing(_name: str) -> Tool | None:
    return None


class ServerTools(Struct, frozen=True):
    """The tools of servers.

    `fit` drops tools that take too much of a model's window (tokens; 0: unknown). `find` returns a further tool by the
    name that a model calls; None: there are none.
    """

    tools: tuple[Tool, ...] = ()
    fit: Fit = _offer_all
    find: Find = _find_nothing


class Toolbox(Struct, dict=True):
    """Tools by name, in a fixed order, so that a session's requests keep their prefix.

    It changes only when a user adds a server of tools, or a server says that it has others. `fit` and `find`: see
    ServerTools.
    """

    tools: tuple[AnyTool, ...]
    fit: Fit = _offer_all
    find: Find = _find_nothing

    def take(self, other: "Toolbox") -> None:
        """Replace this toolbox's contents by another's, from the next request on."""
        self.tools, self.fit, self.find = other.tools, other.fit, other.find
        vars(self).clear()  # caches of the old tools

    @cached_property
    def by_name(self) -> dict[str, AnyTool]:
        """Tools by their names."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def _specs(self) -> dict[str, ToolSpec]:
        return {tool.name: tool.spec for tool in self.tools}

    def specs(self, model: str, *rulesets: Ruleset) -> tuple[ToolSpec, ...]:
        """Return the tools offered to a model (by its id): those that suit it and are not denied completely."""
        unsuitable = _list_unsuitable(model)
        offers = (
            self._spec(tool, rulesets)
            for tool in self.tools
            if tool.name not in unsuitable
            and is_offered(tool.name, *rulesets, traits=tool.needs)
            and is_offered(tool.permission, *rulesets, traits=tool.needs)
        )
        return tuple(spec for spec in offers if spec is not None)

    def _spec(self, tool: AnyTool, rulesets: tuple[Ruleset, ...]) -> ToolSpec | None:
        spec = self._specs[tool.name]
        if tool.describe is None:
            return spec
        description = tool.describe(*rulesets)
        return None if description is None else ToolSpec(spec.name, description, spec.parameters)

    def prepare(
        self, name: str, arguments: str, offered: frozenset[str] | None = None
    ) -> PreparedCall | InvalidToolCall:
        """Parse and validate a model's call, repairing what is certainly meant (`tool/repair`), with notes.

        `offered`: the tools that the model was offered; None: all.
        An optional parameter that is null counts as left out: strict services make their models send every one.
        """
        from codeloop.tool.repair.calls import (
            MeansAnotherTool,
            match_editor,
            match_tool,
            repair_for_tool,
            repair_parameters,
        )

        notes: list[str] = []
        ours = name if name in self.by_name else match_tool(name, list(self.by_name))
        schema = self._specs[ours].parameters if ours else {}
        value = _read_arguments(arguments, schema, notes)
        if (
            ours in {None, "edit"}
            and isinstance(value, dict)
            and (editor_call := match_editor(name, value)) is not None
        ):
            return self.prepare(editor_call[0], msgspec.json.encode(editor_call[1]).decode(), offered)
        if ours is None and isinstance(value, dict) and (elsewhere := self.find(name)) is not None:
            return PreparedCall(elsewhere, value, value)
        if ours is None:
            names = ", ".join(sorted(self.by_name if offered is None else offered))
            arguments_shown = value if isinstance(value, dict) else {}
            return InvalidToolCall(
                f"There is no tool named {name}. The tools are: {names}.", arguments_shown, unusable=True
            )
        if name.strip().casefold() != ours.casefold():
            notes.append(f"the tool is named `{ours}` here")
        tool = self.by_name[ours].loaded
        if isinstance(value, str):
            reason = f"The arguments of {tool.name} are not a JSON object: {value}."
            return InvalidToolCall(f"{reason} It takes {signature(ours, schema)}.", {}, unusable=True)
        if tool.schema is not None:
            return PreparedCall(tool, value, value, "; ".join(notes))
        try:
            own = repair_for_tool(ours, without_nulls(value, schema), notes)
            repaired = repair_for_tool(ours, repair_parameters(own, schema, notes), notes)
        except MeansAnotherTool as error:
            return InvalidToolCall(str(error), value, unusable=False)
        try:
            params = msgspec.convert(repaired, tool.params, strict=False)
        except (msgspec.ValidationError, OverflowError) as error:
            try:
                unpacked = repair_parameters(without_nulls(_unpack(repaired), schema), schema, notes)
                params = msgspec.convert(unpacked, tool.params, strict=False)
            except (msgspec.ValidationError, OverflowError):
                reason = f"The {ours} tool was called with invalid arguments: {error}."
                also = f" Also: {'; '.join(dict.fromkeys(notes))}." if notes else ""
                takes = f"It takes {signature(ours, schema)}."
                return InvalidToolCall(f"{reason}{also}", value, unusable=False, advice=takes)
        return PreparedCall(tool, params, repaired, "; ".join(dict.fromkeys(notes)))


def _read_arguments(arguments: str, schema: JSON, notes: list[str]) -> JSON | str:
    """Return the JSON object that a text is or certainly means, or why it is none; add what was repaired to `notes`."""
    from codeloop.tool.repair.arguments import read_loosely, repair_text

    value = _parse_arguments(repair_text(arguments, schema))
    loose = read_loosely(arguments, schema, notes) if isinstance(value, str) else None
    return value if loose is None else _parse_arguments(loose)


def _parse_arguments(arguments: str) -> JSON | str:
    """Return the JSON object, or why the text is not one."""
    deepest = TOOL_DEPTH.value
    try:
        value = _object(arguments.encode("utf-8", "surrogatepass"))
    except msgspec.DecodeError as error:
        return str(error)
    except RecursionError:
        return f"they are nested deeper than {deepest} levels"
    is_deep = arguments.count("[") + arguments.count("{") > deepest and _is_deeper(value, deepest)
    return f"they are nested deeper than {deepest} levels" if is_deep else value


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested deeper than `levels`."""
    level: list[Any] = [value]
    while level and levels >= 0:
        level = [item for outer in level for item in _list_members(outer)]
        levels -= 1
    return bool(level)


def _list_members(value: Any) -> list[Any]:
    """Return the lists and objects directly inside a list or an object."""
    inside = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
    return [item for item in inside if isinstance(item, dict | list)]


def _unpack(value: JSON) -> JSON:
    """Return the object with arguments that came as JSON text parsed: models sometimes quote a list or an object."""
    result: JSON = {}
    for key, item in value.items():
        result[key] = item
        if isinstance(item, str) and item[:1] in {"[", "{"}:
            parsed = _parse_arguments(f'{{"item":{item}}}')
            if isinstance(parsed, dict):
                result[key] = parsed["item"]
    return result


def _list_unsuitable(model: str) -> frozenset[str]:
    """Return the tools that a model (by its id) is not offered, because another one suits it better."""
    return _EDIT_TOOLS if edits_by_patch(model) else _PATCH_TOOLS


def edits_by_patch(model: str) -> bool:
    """Return whether a model (by its id) is offered patches instead of single edits."""
    return any(matches(model, pattern) for pattern in _PATCH_MODELS)
