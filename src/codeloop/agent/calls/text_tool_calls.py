"""Parses tool calls that a model wrote as text, in the formats of several model families. Pure."""

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec

from codeloop.kit.text.patterns import compile_once
from codeloop.schema.wire import JSON
from codeloop.tool.repair.arguments import encode_arguments
from codeloop.tool.repair.calls import match_tool
from codeloop.tool.repair.loose_json import read_json, to_value
from codeloop.workspace.syntax_tree import parse_python

# Matches the marker that each format contains. An answer without one needs no further search.
_FORMAT_MARKER = (
    r"(?i)<\W{0,3}(?:DSML\W)?(?:tool|function|invoke)|TOOL_CALLS|python_tag|to=functions\.|```|\A\s*[\[{]|Action Input:"
    r"|</\w+>\s*\Z|\)\]?\s*\Z"
)
# Matches what precedes one JSON object, or a list of objects, that holds both name and arguments.
_JSON_FORMS = (
    r"<tool_call>\s*(?=\{)"  # Hermes, Qwen
    r"|<function_call>\s*(?=\{)"
    r"|\[TOOL_CALLS\]\s*(?=[\[{])"  # Mistral
    r"|<\|python_tag\|>\s*(?=\{)"  # Llama
    r"|```(?:json|tool_call|tool_code)?\s*\n\s*(?=[\[{])"
    r"|\A\s*(?=[\[{])"
)
# Matches a call's name, with what precedes its arguments, a JSON object:
# `<function=read>{"filePath": "a.py"}`. A group is named after the model family.
_NAMED_FORMS = (
    r"(?m)<function=(?P<llama>[\w.-]+)>\s*(?=\{)"
    r"|\[TOOL_CALLS\]\s*(?P<mistral>[\w.-]+)\s*(?:\[CALL_ID\]\w+)?\[ARGS\]\s*(?=\{)"
    r"|<\W?tool\Wcall\Wbegin\W?>(?:function<\W?tool\Wsep\W?>)?(?P<deepseek>[\w.-]+)\s*"
    r"(?:<\W?tool\Wsep\W?>|\n```json)\s*(?=\{)"
    r"|<\|tool_call_begin\|>\s*(?:functions\.)?(?P<kimi>[\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*(?=\{)"
    r"|(?:<\|start\|>assistant)?(?:<\|channel\|>)?(?:commentary|analysis)?\s*"  # gpt-oss
    r"to=functions\.(?P<harmony>[\w.-]+)[^{\n]*?(?:<\|message\|>|\s)\s*(?=\{)"
    r"|^Action:[ \t]*(?P<react>[\w.-]+)[ \t]*\n+Action Input:[ \t]*(?=\{)"
)
# Matches a call whose arguments are tags: a group for the name, and one for the tags. For example
# `<function=read><parameter=filePath>a.py</parameter></function>`.
_TAG_FORMS = (
    r"(?s)<function=(?P<qwen>[\w.-]+)>\s*(?P<qwen_body><parameter=.*?)</function>"  # Qwen's coders
    r"|<tool_call>\s*(?P<glm>[\w.-]+)\s*(?P<glm_body><arg_key>.*?)</tool_call>"
    r"|<(?:\W?DSML\W?)?invoke name=\"(?P<invoke>[\w.-]+)\">(?P<invoke_body>.*?)</(?:\W?DSML\W?)?invoke>"
)
# Matches one argument: its name and value are the two groups that match.
_ARGUMENT_TAG = (
    r"(?s)<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>"
    r"|<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>\n?(.*?)\n?</arg_value>"
    r"|<(?:\W?DSML\W?)?parameter name=\"([\w.-]+)\"[^>]*>(.*?)</(?:\W?DSML\W?)?parameter>"
    r"|<(?P<tag>[A-Za-z_]\w*)>\n?(.*?)\n?</(?P=tag)>"
)
# Matches Python code at the end of an answer: fenced, as Gemma writes calls, or its last lines,
# as Llama does.
_PYTHON_FORMS = (
    r"(?m)```(?:tool_code|tool_call|python|py)?[ \t]*\n(?P<fenced>[^`]+?)\n?```\s*\Z"
    r"|^(?P<plain>\[?[A-Za-z_][\w.]*\((?:[^\n]|\n(?!\n))*\)\]?)\s*\Z"
)
# Matches the markers around calls, which are removed with them.
_CALL_MARKERS = (
    r"</?(?:\W?DSML\W?)?(?:tool_calls?|function_calls?|function)>|<\W?tool\Wcalls?\W\w+\W?>"
    r"|<\|(?:tool_calls?_\w+|call|channel|start|end|message|constrain)\|>|\[/?TOOL_CALLS\]|```\w*"
)
# Matches what some models make up after a call: its result.
_INVENTED_RESULT = r"(?ms)(?:<tool_response>|^Observation:).*\Z"
# The keys under which models write a call's name and its arguments in JSON.
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS_KEYS = ("arguments", "parameters", "args", "input", "action_input")
_MAX_CALLS = 25
# The length of the end of an answer in which Python's form is searched for.
_PYTHON_CHARS = 20_000


class TextToolCall(NamedTuple):
    """A call: the tool's name as the model wrote it, and the arguments as JSON."""

    name: str
    arguments: str


class CallGroup(NamedTuple):
    """Consecutive calls in a text; `start` and `end` are offsets in the text."""

    start: int
    end: int
    calls: tuple[TextToolCall, ...]


def find_text_calls(text: str, tools: frozenset[str]) -> tuple[list[TextToolCall], str]:
    """Return the calls of `tools` at the end of a text, and the text before them.

    A call that other text follows counts as an example, and is not returned. What a model made up
    as the result of a call is dropped.
    """
    if not re.search(_FORMAT_MARKER, text):
        return [], text
    whole_text = text
    text = re.sub(_INVENTED_RESULT, "", text)
    sorted_tools = sorted(tools)
    groups: list[CallGroup] = []
    # Several forms may match the same call: of groups that overlap,
    # the one that begins first counts.
    for group in sorted(_find_groups(text, tools)):
        is_offered = all(
            call.name in tools or match_tool(call.name, sorted_tools) is not None
            for call in group.calls
        )
        if is_offered and (not groups or group.start >= groups[-1].end):
            groups.append(group)
    end = len(text)
    last_groups: list[CallGroup] = []
    # From the end backwards, as long as nothing but markers stands between two groups.
    while groups and not re.sub(_CALL_MARKERS, "", text[groups[-1].end : end]).strip():
        last_groups.insert(0, groups.pop())
        end = last_groups[0].start
    calls = [call for group in last_groups for call in group.calls]
    if not calls:
        return [], whole_text
    return calls[:_MAX_CALLS], re.sub(_CALL_MARKERS, "", text[:end]).rstrip()


def _find_groups(text: str, tools: frozenset[str]) -> Iterator[CallGroup]:
    """Yield the calls of every form in a text, in no particular order; groups may overlap."""
    names = "|".join(map(re.escape, sorted(tools)))
    # Cline's form: the tool's name is the tag.
    for match in re.finditer(rf"<({names})>\s*(<\w+>.*?)</\1>", text, re.DOTALL):
        call = TextToolCall(match[1], _read_argument_tags(match[2]))
        yield CallGroup(match.start(), match.end(), (call,))
    if (
        match := compile_once(_PYTHON_FORMS).search(text, max(0, len(text) - _PYTHON_CHARS))
    ) is not None:
        calls = _read_python(match["fenced"] or match["plain"])
        if calls:
            yield CallGroup(match.start(), match.end(), tuple(calls))
    for match in re.finditer(_TAG_FORMS, text):
        form = next(group for group in ("qwen", "glm", "invoke") if match[group])
        call = TextToolCall(match[form], _read_argument_tags(match[f"{form}_body"]))
        yield CallGroup(match.start(), match.end(), (call,))
    for match in re.finditer(_NAMED_FORMS, text):
        value, end = read_json(text, match.end()) or (None, 0)
        arguments = encode_arguments(cast("JSON", value)) if isinstance(value, dict) else None
        if arguments is not None:
            name = next(filter(None, match.groups()))
            yield CallGroup(match.start(), end, (TextToolCall(name, arguments),))
    for match in re.finditer(_JSON_FORMS, text):
        value, end = read_json(text, match.end()) or (None, 0)
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        calls = [call for item in items if (call := _read_json_call(item)) is not None]
        if calls and len(calls) == len(items):
            yield CallGroup(match.start(), end, tuple(calls))


def _read_argument_tags(text: str) -> str:
    """Return the arguments that the tags in a text hold, as JSON."""
    arguments: dict[str, str] = {}
    for match in re.finditer(_ARGUMENT_TAG, text):
        name, value = [group for group in match.groups() if group is not None]
        arguments[name] = value
    return msgspec.json.encode(arguments).decode()


def _read_python(code: str) -> list[TextToolCall]:
    """Return the calls in lines of Python such as `read(filePath="a.py")`;
    empty if the lines do anything else.
    """
    calls: list[TextToolCall] = []
    try:
        for statement in parse_python(code.strip()).body:
            if not isinstance(statement, ast.Expr):
                return []
            value = statement.value
            for node in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
                call = _unwrap_print(node)
                if (
                    not isinstance(call, ast.Call)
                    or call.args
                    or any(word.arg is None for word in call.keywords)
                ):
                    return []
                # Gemma writes `default_api.read(...)`.
                name = ast.unparse(call.func).rpartition(".")[2]
                arguments = {word.arg: to_value(word.value) for word in call.keywords}
                calls.append(TextToolCall(name, msgspec.json.encode(arguments).decode()))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []
    return calls


def _unwrap_print(node: ast.expr) -> ast.expr:
    """Return the argument of a `print(...)`: Gemma prints the results of its calls.
    Others stay as they are.
    """
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[printed]):
            return printed
        case _:
            return node


def _read_json_call(value: Any) -> TextToolCall | None:
    """Return the call that a JSON object describes; None if the value is not a call."""
    if not isinstance(value, dict):
        return None
    fields = cast("JSON", value)
    # As in OpenAI's API: `{"type": "function", "function": {"name", "arguments"}}`.
    if isinstance(inner := fields.get("function"), dict):
        fields = cast("JSON", inner)
    if not fields.keys() <= {*_NAME_KEYS, *_ARGUMENTS_KEYS, "id", "type"}:
        return None
    name = next((fields[key] for key in _NAME_KEYS if isinstance(fields.get(key), str)), None)
    arguments = next((fields[key] for key in _ARGUMENTS_KEYS if key in fields), None)
    if isinstance(arguments, dict):
        arguments = encode_arguments(cast("JSON", arguments))
    return (
        TextToolCall(str(name), arguments)
        if name is not None and isinstance(arguments, str)
        else None
    )
