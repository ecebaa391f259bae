"""Parses tool calls that a model wrote as text, in the formats of several model families. Pure."""

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec

from codeloop.schema.wire import JSON
from codeloop.tool.repair.calls import match_tool
from codeloop.tool.repair.loose_json import read_json, to_value
from codeloop.workspace.syntax_tree import parse_python

# Matches the marker that each format contains. An answer without one needs no further search.
_FORMAT_MARKER = re.compile(
    r"<\W{0,3}(?:DSML\W)?(?:tool|function|invoke)|TOOL_CALLS|python_tag|to=functions\.|```|\A\s*[\[{]|Action Input:"
    r"|</\w+>\s*\Z|\)\]?\s*\Z",
    re.IGNORECASE,
)
# Matches what precedes one JSON object, or a list of objects, that holds both name and arguments.
_JSON_FORMS = re.compile(
    r"<tool_call>\s*(?=\{)"  # Hermes, Qwen
    r"|<function_call>\s*(?=\{)"
    r"|\[TOOL_CALLS\]\s*(?=[\[{])"  # Mistral
    r"|<\|python_tag\|>\s*(?=\{)"  # Llama
    r"|```(?:json|tool_call|tool_code)?\s*\n\s*(?=[\[{])"
    r"|\A\s*(?=[\[{])"  # the whole answer
)
# Matches a call's name; the arguments follow as a JSON object. A group is named after the model family.
_NAMED_FORMS = re.compile(
    r"<function=(?P<llama>[\w.-]+)>\s*(?=\{)"
    r"|\[TOOL_CALLS\]\s*(?P<mistral>[\w.-]+)\s*(?:\[CALL_ID\]\w+)?\[ARGS\]\s*(?=\{)"
    r"|<\W?tool\Wcall\Wbegin\W?>(?:function<\W?tool\Wsep\W?>)?(?P<deepseek>[\w.-]+)\s*"
    r"(?:<\W?tool\Wsep\W?>|\n```json)\s*(?=\{)"
    r"|<\|tool_call_begin\|>\s*(?:functions\.)?(?P<kimi>[\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*(?=\{)"
    r"|(?:<\|start\|>assistant)?(?:<\|channel\|>)?(?:commentary|analysis)?\s*"  # gpt-oss
    r"to=functions\.(?P<harmony>[\w.-]+)[^{\n]*?(?:<\|message\|>|\s)\s*(?=\{)"
    r"|^Action:[ \t]*(?P<react>[\w.-]+)[ \t]*\n+Action Input:[ \t]*(?=\{)",
    re.MULTILINE,
)
# Matches a call whose arguments are tags: a group for the name, and one for the tags.
_TAG_FORMS = re.compile(
    r"<function=(?P<qwen>[\w.-]+)>\s*(?P<qwen_body><parameter=.*?)</function>"  # Qwen's coders
    r"|<tool_call>\s*(?P<glm>[\w.-]+)\s*(?P<glm_body><arg_key>.*?)</tool_call>"
    r"|<(?:\W?DSML\W?)?invoke name=\"(?P<invoke>[\w.-]+)\">(?P<invoke_body>.*?)</(?:\W?DSML\W?)?invoke>",
    re.DOTALL,
)
# Matches one argument: its name and value are the two groups that match.
_ARGUMENT_TAG = re.compile(
    r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>"
    r"|<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>\n?(.*?)\n?</arg_value>"
    r"|<(?:\W?DSML\W?)?parameter name=\"([\w.-]+)\"[^>]*>(.*?)</(?:\W?DSML\W?)?parameter>"
    r"|<(?P<tag>[A-Za-z_]\w*)>\n?(.*?)\n?</(?P=tag)>",  # <read><filePath>a.py</filePath></read>
    re.DOTALL,
)
# Matches Python code at the end of an answer: fenced, as Gemma writes calls, or its last lines, as Llama does.
_PYTHON_FORMS = re.compile(
    r"```(?:tool_code|tool_call|python|py)?[ \t]*\n(?P<fenced>[^`]+?)\n?```\s*\Z"
    r"|^(?P<plain>\[?[A-Za-z_][\w.]*\((?:[^\n]|\n(?!\n))*\)\]?)\s*\Z",
    re.MULTILINE,
)
# Matches the markers around calls, which are removed with them.
_CALL_MARKERS = re.compile(
    r"</?(?:\W?DSML\W?)?(?:tool_calls?|function_calls?|function)>|<\W?tool\Wcalls?\W\w+\W?>"
    r"|<\|(?:tool_calls?_\w+|call|channel|start|end|message|constrain)\|>|\[/?TOOL_CALLS\]|```\w*"
)
# Matches what some models make up after a call: its result.
_INVENTED_RESULT = re.compile(r"(?:<tool_response>|^Observation:).*\Z", re.DOTALL | re.MULTILINE)
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS_KEYS = ("arguments", "parameters", "args", "input", "action_input")
_MAX_CALLS = 25
# The length of the end of an answer in which Python's form is searched for.
_PYTHON_CHARS = 20_000


class TextToolCalls(NamedTuple):
    """Consecutive calls in a text, each a name and its arguments as JSON; `start` and `end` are offsets in the text."""

    start: int
    end: int
    calls: tuple[tuple[str, str], ...]


def find_text_calls(text: str, tools: frozenset[str]) -> tuple[list[tuple[str, str]], str]:
    """Return the calls of `tools` at the end of a text (names, and arguments as JSON), and the text before them.

    A call that other text follows counts as an example, and is not returned. What a model made up as the result of a
    call is dropped.
    """
    if not _FORMAT_MARKER.search(text):
        return [], text
    whole, text = text, _INVENTED_RESULT.sub("", text)
    offered = sorted(tools)
    groups: list[TextToolCalls] = []
    for tool_calls in sorted(_find_all(text, tools)):
        is_offered = all(name in tools or match_tool(name, offered) is not None for name, _ in tool_calls.calls)
        if is_offered and (not groups or tool_calls.start >= groups[-1].end):
            groups.append(tool_calls)
    end = len(text)
    last: list[TextToolCalls] = []
    while groups and not _CALL_MARKERS.sub("", text[groups[-1].end : end]).strip():
        last.insert(0, groups.pop())
        end = last[0].start
    calls = [call for group in last for call in group.calls]
    return (calls[:_MAX_CALLS], _CALL_MARKERS.sub("", text[:end]).rstrip()) if calls else ([], whole)


def _find_all(text: str, tools: frozenset[str]) -> Iterator[TextToolCalls]:
    names = "|".join(map(re.escape, sorted(tools)))
    # Cline's form: the tool's name is the tag.
    for match in re.finditer(rf"<({names})>\s*(<\w+>.*?)</\1>", text, re.DOTALL):
        arguments = {pair[-2]: pair[-1] for pair in map(_list_groups, _ARGUMENT_TAG.finditer(match[2]))}
        yield TextToolCalls(match.start(), match.end(), ((match[1], msgspec.json.encode(arguments).decode()),))
    if (match := _PYTHON_FORMS.search(text, max(0, len(text) - _PYTHON_CHARS))) is not None:
        calls = _read_python(match["fenced"] or match["plain"])
        if calls:
            yield TextToolCalls(match.start(), match.end(), tuple(calls))
    for match in _TAG_FORMS.finditer(text):
        form = next(group for group in ("qwen", "glm", "invoke") if match[group])
        groups = map(_list_groups, _ARGUMENT_TAG.finditer(match[f"{form}_body"]))
        arguments = {pair[0]: pair[1] for pair in groups}
        yield TextToolCalls(match.start(), match.end(), ((match[form], msgspec.json.encode(arguments).decode()),))
    for match in _NAMED_FORMS.finditer(text):
        arguments, end = read_json(text, match.end()) or (None, 0)
        if isinstance(arguments, dict):
            name = next(filter(None, match.groups()))
            yield TextToolCalls(match.start(), end, ((name, msgspec.json.encode(arguments).decode()),))
    for match in _JSON_FORMS.finditer(text):
        value, end = read_json(text, match.end()) or (None, 0)
        rows = cast("list[Any]", value) if isinstance(value, list) else [value]
        calls = [call for row in rows if (call := _as_call(row)) is not None]
        if calls and len(calls) == len(rows):
            yield TextToolCalls(match.start(), end, tuple(calls))


def _list_groups(match: re.Match[str]) -> list[str]:
    return [each for each in match.groups() if each is not None]


def _read_python(code: str) -> list[tuple[str, str]]:
    """Return the calls in lines of Python such as `read(filePath="a.py")`; empty if the lines do anything else."""
    calls: list[tuple[str, str]] = []
    try:
        for statement in parse_python(code.strip()).body:
            if not isinstance(statement, ast.Expr):
                return []
            value = statement.value
            for node in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
                call = _unwrap_print(node)
                if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
                    return []
                # Gemma writes `default_api.read(...)`.
                name = ast.unparse(call.func).rpartition(".")[2]
                arguments = {word.arg: to_value(word.value) for word in call.keywords}
                calls.append((name, msgspec.json.encode(arguments).decode()))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []
    return calls


def _unwrap_print(node: ast.expr) -> ast.expr:
    """Return the argument of a `print(...)`: Gemma prints the results of its calls. Others stay as they are."""
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[printed]):
            return printed
        case _:
            return node


def _as_call(value: Any) -> tuple[str, str] | None:
    """Return the name and the arguments (as JSON) of a call; None if the value is not a call."""
    if not isinstance(value, dict):
        return None
    row = cast("JSON", value)
    if isinstance(inner := row.get("function"), dict):
        row = cast("JSON", inner)
    name = next((row[key] for key in _NAME_KEYS if isinstance(row.get(key), str)), None)
    arguments = next((row[key] for key in _ARGUMENTS_KEYS if key in row), None)
    if (
        name is None
        or not isinstance(arguments, dict | str)
        or not row.keys() <= {*_NAME_KEYS, *_ARGUMENTS_KEYS, "id", "type"}
    ):
        return None
    return str(name), arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
