"""The tools of a project, in the order in which models are told of them."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.extend.agents import naming_subagents
from codeloop.kit.lazy import load
from codeloop.schema.agent import Agent
from codeloop.schema.config import SearchConfig
from codeloop.schema.wire import JSON, replace
from codeloop.tool import builtin
from codeloop.tool.builtin.session.batch import batch_tool
from codeloop.tool.tool import BuiltinTool, Tool
from codeloop.tool.toolbox import Fit, Toolbox
from codeloop.tool.web.providers import search_provider

BUILTIN = {
    "bash": "tool.builtin.shell.bash:bash",
    "bash_output": "tool.builtin.shell.bash_output:bash_output",
    "bash_kill": "tool.builtin.shell.bash_kill:bash_kill",
    "read": "tool.builtin.files.read:read",
    "write": "tool.builtin.files.write:write",
    "edit": "tool.builtin.files.edit:edit",
    "multiedit": "tool.builtin.files.multiedit:multiedit",
    "apply_patch": "tool.builtin.files.apply_patch:apply_patch",
    "glob": "tool.builtin.search.glob:glob",
    "grep": "tool.builtin.search.grep:grep",
    "list": "tool.builtin.search.list_:list_",
    "webfetch": "tool.builtin.web.webfetch:webfetch",
    "todowrite": "tool.builtin.session.todo:todowrite",
    "todoread": "tool.builtin.session.todo:todoread",
    "question": "tool.builtin.session.question:question",
    "task": "tool.builtin.session.task:task",
    "task_output": "tool.builtin.session.task_output:task_output",
    "plan_exit": "tool.builtin.session.plan_exit:plan_exit",
}
"""Where each tool is; its module is imported when it is first called."""

PARAMETERS = Path(str(builtin.__file__)).with_name("parameters.json")


class Offered(Struct, frozen=True):
    """What `make tools` writes of a tool: the name that rules know it by, and the schema that models read."""

    permission: str
    parameters: JSON


@cache
def builtin_tools() -> tuple[BuiltinTool, ...]:
    """Return the rows of the built-in tools."""
    offered = msgspec.json.decode(PARAMETERS.read_bytes(), type=dict[str, Offered])
    return tuple(
        BuiltinTool(name, target, offered[name].permission, offered[name].parameters)
        for name, target in BUILTIN.items()
    )


def toolbox_of(more: Iterable[Tool] = (), agents: dict[str, Agent] | None = None, fit: Fit | None = None) -> Toolbox:
    """Return the built-in tools and those of the project; `task` names the subagents, `batch` runs any tool."""
    known = agents or {}
    rows = (
        replace(row, describe=naming_subagents(row.description, known)) if row.name == "task" and known else row
        for row in builtin_tools()
    )
    tools = (*rows, *more)
    every = (*tools, batch_tool(Toolbox(tools)))
    return Toolbox(every) if fit is None else Toolbox(every, fit)


def search_tools(settings: SearchConfig | None, environment: Mapping[str, str]) -> tuple[Tool, ...]:
    """Return the tools of the search service that is chosen; none when none is."""
    provider = search_provider(settings, environment)
    if provider is None:
        return ()
    tools_of: Callable[..., tuple[Tool, ...]] = load("tool.web.search:tools_of")
    return tools_of(provider, settings, environment)
