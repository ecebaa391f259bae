"""The tools of one project: `Toolbox` lists those that a model is offered,
and parses and validates its calls.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from codeloop.kit.wildcard import matches
from codeloop.model.chat import ToolSpec
from codeloop.permission.rules import is_offered
from codeloop.schema.limits import TOOL_ARGUMENTS, TOOL_DEPTH, TOOL_ITEMS
from codeloop.schema.part import NOTE_KEY
from codeloop.schema.permission import Ruleset
from codeloop.schema.wire import JSON, bound_depth, replace
from codeloop.tool.json_schema import (
    drop_nulls,
    drop_unsent,
    format_signature,
    name_properties,
    restore_properties,
)
from codeloop.tool.tool import BuiltinTool, Tool, ToolContext, ToolResult

_decode_object = bound_depth(msgspec.json.Decoder(JSON).decode)

_PATCH_MODEL_PATTERNS = (
    *(
        f"{start}gpt-{number}*"
        for start in ("", "*/", "*openai.")
        for number in ("5", "6", "7", "8", "9", "1?")
    ),
    "*codex*",
)
"""Models that were trained to change files by patches, and their successors;
others are offered `edit` and `write`.
"""

_PATCH_TOOLS = frozenset({"apply_patch"})
_LOOKING_TOOLS = frozenset(
    {"read", "grep", "glob", "list", "todoread", "bash_output", "task_output"}
)
"""Tools that change nothing: a call that broke off does no harm."""
_TEXT_EDIT_TOOLS = frozenset({"edit", "multiedit", "write"})


class PreparedCall(Struct, frozen=True):
    """A call that can run: the tool, its arguments as a struct,
    and the JSON object they came from.
    """

    tool: Tool
    params: msgspec.Struct | JSON
    input: JSON
    note: str = ""
    """A note for the model on the arguments that were repaired, and how; empty: none was."""
    hook_verdict: Literal["ask", "allow"] | None = None
    """The decision of an extension's hook on the call's permissions; None: the rules decide."""

    async def run(self, ctx: ToolContext) -> ToolResult:
        """Run the call."""
        result = await self.tool.run(self.params, ctx)
        if not self.note:
            return result
        note = f"(Note: {self.note}.)"
        output = result.output.rstrip("\n") + f"\n\n{note}"
        return replace(result, output=output, metadata={**result.metadata, NOTE_KEY: note})


class InvalidToolCall(Struct, frozen=True):
    """A call that can't run. `reason` says why; `input` is its JSON object, empty if it has none.

    `is_unusable`: there is no such tool, or the arguments are not a JSON object;
    UIs show the tool `invalid`.
    """

    reason: str
    input: JSON
    is_unusable: bool
    advice: str = ""
    """The tool's signature, for the model; user interfaces do not show it."""

    def __str__(self) -> str:
        """Return the text for the model."""
        return f"{self.reason} {self.advice}" if self.advice else self.reason


AnyTool = Tool | BuiltinTool
FitTools = Callable[[tuple[ToolSpec, ...], int], tuple[ToolSpec, ...]]
"""Takes specs and the tokens of a model's window (0: unknown);
returns the specs that may take that much of it.
"""
FindTool = Callable[[str], Tool | None]
"""Takes the name that a model called, and returns the tool; None: there is none."""


def _offer_all(specs: tuple[ToolSpec, ...], _window: int) -> tuple[ToolSpec, ...]:
    return specs


def _find_nothing(_name: str) -> Tool | None:
    return None


class ServerTools(Struct, frozen=True):
    """The tools of MCP servers.

    `find_tool` finds those that are not in `tools`, because the model has to search for them.
    """

    tools: tuple[Tool, ...] = ()
    fit_specs: FitTools = _offer_all
    find_tool: FindTool = _find_nothing


class Toolbox(Struct, dict=True):
    """The tools of a project in a fixed order, so that a service's cache of the start
    of a request stays valid.

    The contents change only when MCP servers or extensions offer other tools than before.
    `fit_specs` and `find_tool`: see ServerTools.
    """

    tools: tuple[AnyTool, ...]
    fit_specs: FitTools = _offer_all
    find_tool: FindTool = _find_nothing

    def replace_with(self, other: "Toolbox") -> None:
        """Replace the contents of this toolbox by those of another, from the next request on."""
        self.tools, self.fit_specs, self.find_tool = other.tools, other.fit_specs, other.find_tool
        # The cached properties hold the old tools.
        # A struct's fields are not in `vars`, so they stay.
        vars(self).clear()

    @cached_property
    def tools_by_name(self) -> dict[str, AnyTool]:
        """The tools by their names."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def _specs_by_name(self) -> dict[str, ToolSpec]:
        return {tool.name: tool.spec for tool in self.tools}

    @cached_property
    def _schemas_by_name(self) -> dict[str, JSON]:
        """The schemas by which calls are read, with the parameters that models are not told of."""
        return {tool.name: tool.parameters for tool in self.tools}

    def list_specs(
        self, model: str, *rulesets: Ruleset, needed: frozenset[str] = frozenset()
    ) -> tuple[ToolSpec, ...]:
        """Return the specs of the tools to offer to a model (by its id): they suit it,
        and no rule denies them.

        `needed`: names of tools that are otherwise only offered where a rule
        names them (OFFER_PATTERN).
        """
        unsuitable = _list_unsuitable_tools(model)
        offers = (
            self._make_spec(tool, rulesets)
            for tool in self.tools
            if tool.name not in unsuitable
            and is_offered(
                tool.name, *rulesets, traits=tool.need_traits, is_needed=tool.name in needed
            )
            and is_offered(tool.permission, *rulesets, traits=tool.need_traits)
        )
        return tuple(spec for spec in offers if spec is not None)

    def _make_spec(self, tool: AnyTool, rulesets: tuple[Ruleset, ...]) -> ToolSpec | None:
        spec = self._specs_by_name[tool.name]
        if tool.build_description is None:
            return spec
        description = tool.build_description(*rulesets)
        return None if description is None else replace(spec, description=description)

    def prepare(
        self, name: str, arguments: str, offered: frozenset[str] | None = None
    ) -> PreparedCall | InvalidToolCall:
        """Parse and validate a model's call. Mistakes whose meaning is certain are repaired
        (`tool/repair`) and noted.

        `offered`: the names that the error for an unknown tool lists; None: all.
        Calls of others are prepared, too.
        """
        # Imported late: a request without calls does not need it.
        from codeloop.tool.repair.calls import match_tool, translate_editor_call

        if len(arguments) > TOOL_ARGUMENTS.value:
            reason = f"The arguments of {name} have more than {TOOL_ARGUMENTS.value:,} characters, so it was not run."
            return InvalidToolCall(
                reason, {}, is_unusable=False, advice="Make several calls, or use a command."
            )
        notes: list[str] = []
        known_name = (
            name if name in self.tools_by_name else match_tool(name, list(self.tools_by_name))
        )
        schema = self._schemas_by_name[known_name] if known_name else {}
        value = _read_arguments(arguments, schema, notes)
        if isinstance(value, str) and known_name in _LOOKING_TOOLS:
            value = _close_arguments(arguments, notes) or value
        # Some agents have one tool with commands for all that an editor does.
        if isinstance(value, dict) and known_name is None:
            editor_call = translate_editor_call(name, value)
            if editor_call is not None:
                our_name, our_arguments = editor_call
                return self.prepare(our_name, msgspec.json.encode(our_arguments).decode(), offered)
        if known_name is None:
            return self._prepare_unlisted(name, value, offered)
        if name.strip().casefold() != known_name.casefold():
            notes.append(f"the tool is named `{known_name}` here")
        tool = self.tools_by_name[known_name].implementation
        if isinstance(value, str):
            reason = f"The arguments of {tool.name} {value}."
            return InvalidToolCall(
                f"{reason} It takes {format_signature(known_name, drop_unsent(schema))}.",
                {},
                is_unusable=True,
            )
        if tool.schema is not None:
            return _prepare_external_call(tool, value, notes)
        return _validate_call(tool, schema, value, notes)

    def _prepare_unlisted(
        self, name: str, value: JSON | str, offered: frozenset[str] | None
    ) -> PreparedCall | InvalidToolCall:
        """Prepare a call of a tool that is not in `tools`: one that the model found by searching,
        else an error.
        """
        shown_arguments: JSON = {}
        if isinstance(value, dict):
            server_tool = self.find_tool(name)
            if server_tool is not None:
                return _prepare_external_call(server_tool, value, [])
            shown_arguments = value
        names = ", ".join(sorted(self.tools_by_name if offered is None else offered))
        return InvalidToolCall(
            f"There is no tool named {name}. The tools are: {names}.",
            shown_arguments,
            is_unusable=True,
        )


def _prepare_external_call(tool: Tool, arguments: JSON, notes: list[str]) -> PreparedCall:
    """Prepare a call of a tool that checks its arguments itself,
    such as an extension's or an MCP server's.
    """
    # Imported late: a session that calls no such tool does not pay for it.
    from codeloop.tool.repair.typed_values import convert_texts

    # Models were told other names of the properties whose own a service refuses.
    schema = tool.schema or {}
    own_names = {told: own for own, told in name_properties(schema).items()}
    converted = convert_texts(restore_properties(arguments, schema, own_names), schema)
    return PreparedCall(tool, converted, converted, "; ".join(notes))


def _validate_call(
    tool: Tool, schema: JSON, arguments: JSON, notes: list[str]
) -> PreparedCall | InvalidToolCall:
    """Convert the arguments of a call to the tool's struct. Repairs are added to `notes`."""
    from codeloop.tool.repair.calls import CallNotSupported, repair_for_tool, repair_parameters

    try:
        # An optional parameter that is null counts as left out: strict services make
        # their models send every one.
        without_nulls = drop_nulls(arguments, schema)
        # The rules of a tool apply to other agents' parameters,
        # and again to ours once they are renamed.
        translated = repair_for_tool(tool.name, without_nulls, notes)
        repaired = repair_for_tool(tool.name, repair_parameters(translated, schema, notes), notes)
    except CallNotSupported as error:
        return InvalidToolCall(str(error), arguments, is_unusable=False)
    try:
        params = msgspec.convert(repaired, tool.params, strict=False)
    except (msgspec.ValidationError, OverflowError) as error:
        try:
            unpacked = repair_parameters(
                drop_nulls(_parse_quoted_values(repaired), schema), schema, notes
            )
            params = msgspec.convert(unpacked, tool.params, strict=False)
        except (msgspec.ValidationError, OverflowError):
            reason = f"The {tool.name} tool was called with invalid arguments: {error}."
            other_mistakes = f" Also: {'; '.join(dict.fromkeys(notes))}." if notes else ""
            usage = f"It takes {format_signature(tool.name, drop_unsent(schema))}."
            return InvalidToolCall(
                f"{reason}{other_mistakes}", arguments, is_unusable=False, advice=usage
            )
    return PreparedCall(tool, params, repaired, "; ".join(dict.fromkeys(notes)))


def _read_arguments(arguments: str, schema: JSON, notes: list[str]) -> JSON | str:
    """Return the JSON object in a call's arguments, or why there is none.
    Repairs are added to `notes`.
    """
    from codeloop.tool.repair.arguments import repair_arguments, unwrap_arguments

    value = _parse_arguments(unwrap_arguments(arguments, schema))
    if isinstance(value, dict):
        return value
    repaired = repair_arguments(arguments, schema, notes)
    return value if repaired is None else _parse_arguments(repaired)


def _close_arguments(arguments: str, notes: list[str]) -> JSON | None:
    """Return the whole part of arguments that broke off, with a note; None: there is none."""
    from codeloop.tool.repair.arguments import CUT_OFF_NOTE, close_arguments

    closed = close_arguments(arguments)
    value = None if closed is None else _parse_arguments(closed)
    if not isinstance(value, dict):
        return None
    notes.append(CUT_OFF_NOTE)
    return value


def _parse_arguments(arguments: str) -> JSON | str:
    """Return the JSON object, or why there is none: what the arguments are instead."""
    deepest = TOOL_DEPTH.value
    try:
        # Lone surrogates have no UTF-8; with `surrogatepass` the decoder reports them as invalid.
        value = _decode_object(arguments.encode("utf-8", "surrogatepass"))
    except msgspec.DecodeError as error:
        return f"are not a JSON object: {error}"
    except RecursionError:
        return (
            f"are not a JSON object that can be taken: they are nested deeper than {deepest} levels"
        )
    # Counting brackets is cheap; the value is only walked when there are enough of them.
    if arguments.count("[") + arguments.count("{") > deepest and _is_nested_deeper(value, deepest):
        return (
            f"are not a JSON object that can be taken: they are nested deeper than {deepest} levels"
        )
    # So is counting commas.
    longest = TOOL_ITEMS.value
    if arguments.count(",") >= longest and _has_longer_list(value, longest):
        return f"have a list of more than {longest:,} items, so it was not run: make several calls"
    return value


def _is_nested_deeper(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested deeper than `levels`."""
    level: list[Any] = [value]
    while level and levels >= 0:
        level = [item for outer in level for item in _list_members(outer)]
        levels -= 1
    return bool(level)


def _has_longer_list(value: Any, most: int) -> bool:
    """Return whether a list or an object in a value, or the value itself,
    has more than `most` items.
    """
    level: list[Any] = [value]
    while level:
        if any(len(each) > most for each in level):
            return True
        level = [item for outer in level for item in _list_members(outer)]
    return False


def _list_members(value: Any) -> list[Any]:
    """Return the lists and objects directly inside a list or an object."""
    inside = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
    return [item for item in inside if isinstance(item, dict | list)]


def _parse_quoted_values(value: JSON) -> JSON:
    """Return an object whose lists and objects in the form of JSON text,
    which models sometimes send, are parsed.
    """
    result: JSON = {}
    for key, item in value.items():
        result[key] = item
        if isinstance(item, str) and item[:1] in {"[", "{"}:
            parsed = _parse_arguments(f'{{"item":{item}}}')
            if isinstance(parsed, dict):
                result[key] = parsed["item"]
    return result


def _list_unsuitable_tools(model: str) -> frozenset[str]:
    """Return the tools that a model (by its id) is not offered,
    because another one suits it better.
    """
    return _TEXT_EDIT_TOOLS if edits_by_patch(model) else _PATCH_TOOLS


def edits_by_patch(model: str) -> bool:
    """Return whether a model (by its id) is offered patches instead of single edits."""
    return any(matches(model, pattern) for pattern in _PATCH_MODEL_PATTERNS)
