"""Finds the tool of a request that a service refused, and leaves it out.
Imported only after a refusal.
"""

import re

from msgspec import Struct

from codeloop.model.chat import ModelRequest, ToolSpec
from codeloop.model.wire.encoding import sanitize_tool_name
from codeloop.schema.errors import APIError
from codeloop.schema.wire import replace

_STATUSES = frozenset({400, 422})
# Anthropic: `tools.3.custom.input_schema`; OpenAI: `tools[3].function`;
# Google: `tools[0].function_declarations[3]`; Amazon: `toolConfig.tools.3.member.toolSpec`.
_POSITION = re.compile(
    r"(?<![a-z])tools(?:\[|\.)(\d+)(\.member)?(?:.{0,3}function_?declarations(?:\[|\.)(\d+))?",
    re.IGNORECASE,
)
# OpenAI and servers like its: "Invalid schema for function 'docs_search': ...".
_NAMED = re.compile(r"(?:function|tool)s? (?:name )?['\"`]([\w.-]{1,64})['\"`]", re.IGNORECASE)
_SEARCHED_CHARS = 4_000


class WithoutTool(Struct, frozen=True):
    """A request without the tool that was refused, and a line about it for the user."""

    request: ModelRequest
    tool: ToolSpec
    message: str


def leave_out_tool(request: ModelRequest, error: APIError) -> WithoutTool | None:
    """Return the request without the tool that an error names; None: it names none of others.

    Tools of ours are never left out: what is wrong with them is a mistake to be told.
    """
    data = error.data
    if data.status_code not in _STATUSES:
        return None
    said = f"{data.message}\n{data.response_body or ''}"[:_SEARCHED_CHARS]
    tool = _find_tool(request.tools, said)
    if tool is None or not tool.origin:
        return None
    rest = tuple(each for each in request.tools if each is not tool)
    message = (
        f"The tool {tool.name} of {tool.origin} is left out from now on, "
        f"since the service refuses it: {data.message}"
    )
    return WithoutTool(replace(request, tools=rest), tool, message)


def _find_tool(tools: tuple[ToolSpec, ...], said: str) -> ToolSpec | None:
    if position := _POSITION.search(said):
        # Google has all tools in one; Amazon counts from 1.
        number = int(position[3] or position[1]) - bool(position[2])
        return tools[number] if 0 <= number < len(tools) else None
    names = {name.casefold() for name in _NAMED.findall(said)}
    return next((each for each in tools if sanitize_tool_name(each.name).casefold() in names), None)
