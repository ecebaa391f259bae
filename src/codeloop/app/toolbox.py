"""Builds the tools of a project, in the order in which models see them."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

import codeloop
from codeloop.app.detect_language_server import has_language_server
from codeloop.app.settings import ProjectSettings
from codeloop.extend.agents import make_subagent_description
from codeloop.extend.skills import make_skill_tool
from codeloop.schema.api.agents import Agent
from codeloop.schema.config import SearchConfig
from codeloop.schema.installation import check_package_file
from codeloop.schema.provider_config import OwnEntry
from codeloop.schema.wire import JSON, replace
from codeloop.tool.batch import make_batch_tool
from codeloop.tool.search_providers import choose_provider
from codeloop.tool.tool import BuiltinTool, Tool
from codeloop.tool.toolbox import AnyTool, ServerTools, Toolbox

BUILTIN_TOOLS = {
    "bash": "tool.builtin.shell.bash:bash",
    "bash_output": "tool.builtin.shell.background_commands:bash_output",
    "bash_kill": "tool.builtin.shell.background_commands:bash_kill",
    "read": "tool.builtin.files.read:read",
    "write": "tool.builtin.files.write:write",
    "edit": "tool.builtin.files.edit:edit",
    "multiedit": "tool.builtin.files.edit:multiedit",
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
    "lsp": "tool.builtin.language.lsp:lsp",
}
"""The module and name of each tool, in the order of every request.
A module is imported at its tool's first call.
"""

BUILTIN_PARAMETERS_FILE = (
    Path(str(codeloop.__file__)).parent / "tool" / "builtin" / "parameters.json"
)


class BuiltinToolSchema(Struct, frozen=True):
    """The entry of a tool in the file that `make tools` writes: its name in permission rules,
    and its schema.
    """

    permission: str
    parameters: JSON


@cache
def list_builtin_tools() -> tuple[BuiltinTool, ...]:
    """Return the built-in tools. The schemas are read from a file,
    so that no module of a tool is imported.
    """
    data = check_package_file(BUILTIN_PARAMETERS_FILE).read_bytes()
    schemas = msgspec.json.decode(data, type=dict[str, BuiltinToolSchema])
    return tuple(
        BuiltinTool(name, target, schemas[name].permission, schemas[name].parameters)
        for name, target in BUILTIN_TOOLS.items()
    )


def make_toolbox(
    more_tools: Iterable[Tool] = (),
    agents: dict[str, Agent] | None = None,
    servers: ServerTools | None = None,
    left_out: frozenset[str] = frozenset(),
) -> Toolbox:
    """Return the built-in tools, except those `left_out`, and the project's;
    `batch` runs any of them.

    Of two tools with the same name the later one is used, at the position of the first. The
    description of `task` names the subagents.
    """
    tools_by_name: dict[str, AnyTool] = {
        tool.name: tool for tool in list_builtin_tools() if tool.name not in left_out
    }
    if agents and (task := tools_by_name.get("task")) is not None:
        build_description = make_subagent_description(task.description, agents)
        tools_by_name["task"] = replace(task, build_description=build_description)
    tools_by_name |= {tool.name: tool for tool in more_tools}
    tools = tuple(tools_by_name.values())
    all_tools = (*tools, make_batch_tool(Toolbox(tools)))
    return (
        Toolbox(all_tools)
        if servers is None
        else Toolbox(all_tools, servers.fit_specs, servers.find_tool)
    )


def make_project_toolbox(
    settings: ProjectSettings,
    agents: dict[str, Agent],
    servers: ServerTools | None,
    extensions: Iterable[Tool] = (),
) -> Toolbox:
    """Return the tools of a project: the built-in ones that can work here, and those
    of its configuration, its MCP servers and its extensions.
    """
    of_servers = servers.tools if servers is not None else ()
    tools = (*list_configured_tools(settings), *of_servers, *extensions)
    return make_toolbox(tools, agents, servers, left_out=list_unusable_tools(settings))


def find_search_tools(
    config: SearchConfig | None, environment: Mapping[str, str], own_entry: OwnEntry | None = None
) -> tuple[Tool, ...]:
    """Return the tools of the configured search services; none if no service is configured.

    `own_entry`: the user's part of `search`, where a project names the address
    and the key is the user's.
    """
    provider = choose_provider(config, environment)
    has_public_code = config is not None and config.code is not None
    if provider is None and not has_public_code:
        return ()
    from codeloop.tool.builtin.web.websearch import make_public_code_search, make_search_tools

    tools: tuple[Tool, ...] = ()
    if provider is not None:
        # Without a provider in the configuration, its address and key are of none.
        own_config = config if config is not None and config.provider is not None else None
        tools = make_search_tools(provider, own_config, environment, own_entry)
    if config is None or config.code is None:
        return tools
    public_code = make_public_code_search(config.code_url, environment)
    return (*(each for each in tools if each.name != public_code.name), public_code)


def list_unusable_tools(settings: ProjectSettings) -> frozenset[str]:
    """Return the names of built-in tools that can't work here: `lsp` without a language server."""
    return frozenset() if has_language_server(settings) else frozenset({"lsp"})


def list_configured_tools(settings: ProjectSettings) -> tuple[Tool, ...]:
    """Return the tools that depend on the configuration: `skill`, if there are skills,
    and web searches.
    """
    skills = settings.skills
    own_entry = settings.loaded.own_entries.get("search")
    search_tools = find_search_tools(settings.config.search, settings.environment, own_entry)
    return (*((make_skill_tool(skills),) if skills.by_name else ()), *search_tools)
