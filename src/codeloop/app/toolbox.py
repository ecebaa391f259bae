"""Builds the tools of a project, in the order in which models see them;
those that ask a language server where one would work.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

import codeloop
from codeloop.app.settings import ProjectSettings
from codeloop.extend.agents import make_subagent_description
from codeloop.extend.skills import make_skill_tool
from codeloop.kit.paths import expand_user_path
from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.schema.api.agents import Agent
from codeloop.schema.config import LspServerConfig, SearchConfig
from codeloop.schema.installation import check_package_file
from codeloop.schema.provider_config import OwnEntry
from codeloop.schema.wire import JSON, replace
from codeloop.tool.batch import make_batch_tool
from codeloop.tool.search_providers import choose_provider
from codeloop.tool.tool import BuiltinTool, Tool
from codeloop.tool.toolbox import AnyTool, ServerTools, Toolbox

_FOREIGN_CODE_FOLDERS = frozenset(("node_modules", "venv", "env", "vendor", "__pycache__"))
"""Folders of code that is not the project's own: searching them would take long,
and prove nothing.
"""
_SERVERS_FILE = Path(str(codeloop.__file__)).with_name("lsp") / "servers" / "servers.json"


class _ServerRow(Struct, frozen=True):
    """The fields of a language server's row that decide whether it can run here; see
    `lsp.servers.server_row`.
    """

    name: str
    languages: dict[str, str]
    commands: list[list[str]]
    roots: list[str] = []
    needs: list[str] = []
    packages: dict[str, str] = {}
    runs_project_code: bool = False
    is_linter: bool = False


def has_language_server(settings: ProjectSettings) -> bool:
    """Return whether a language server could run for a file in the project's upper folders;
    none is started.

    Linters don't count: they report problems with each edit,
    and answer no questions about the code.
    """
    lsp_config, project_root = settings.config.lsp, settings.project_root
    if lsp_config is False:
        return False
    top_folders = dict.fromkeys((project_root.directory, project_root.root))
    rows = _list_rows(lsp_config, trusted=settings.trusted)
    folders = [str(settings.paths.data / "lsp" / name) for name in ("bin", "node_modules/.bin")]
    folders += (
        [str(top / name) for top in top_folders for name in PROJECT_PROGRAM_FOLDERS]
        if settings.trusted
        else []
    )
    path = os.pathsep.join((*folders, settings.environment.get("PATH", "")))
    usable = [row for row in rows if _has_program(row, project_root.root, path)]
    names: set[str] = set()
    # Names gather from folder to folder, since a server may need a file at the top,
    # such as tsconfig.json.
    for folder_names in _list_names_by_folder(top_folders) if usable else ():
        names.update(folder_names)
        if any(_serves(row, names) for row in usable):
            return True
    return False


def _list_rows(
    lsp_config: bool | dict[str, LspServerConfig] | None, *, trusted: bool
) -> list[_ServerRow]:
    """Return the rows of the servers that may run, known and configured ones, without linters."""
    rows = msgspec.json.decode(
        check_package_file(_SERVERS_FILE).read_bytes(), type=list[_ServerRow]
    )
    if isinstance(lsp_config, dict):
        known_names = {row.name for row in rows}
        rows += [
            _ServerRow(name, languages={}, commands=[])
            for name in lsp_config
            if name not in known_names
        ]
        rows = [_apply_config(row, lsp_config.get(row.name)) for row in rows]
    return [row for row in rows if not row.is_linter and (trusted or not row.runs_project_code)]


def _apply_config(row: _ServerRow, entry: LspServerConfig | None) -> _ServerRow:
    """Return a row with its configuration applied, as in `lsp.servers.choice`;
    a disabled one has no command.
    """
    if entry is None:
        return row
    languages = row.languages if entry.extensions is None else dict.fromkeys(entry.extensions, "")
    if entry.disabled or not entry.command:
        return replace(row, languages=languages, commands=[] if entry.disabled else row.commands)
    return replace(
        row, languages=languages, commands=[entry.command], needs=[], runs_project_code=False
    )


def _has_program(row: _ServerRow, root: Path, path: str) -> bool:
    for name in dict.fromkeys(command[0] for command in row.commands if command):
        program_path = (
            str(root / expand_user_path(name))
            if "/" in name
            else find_program(name, path, in_project=True)
        )
        if program_path is not None and os.access(program_path, os.X_OK):
            from codeloop.lsp.servers.program_check import has_server

            if has_server(program_path, row.packages):
                return True
    return False


def _serves(row: _ServerRow, names: set[str]) -> bool:
    """Return whether a project with these file names and endings has files for a server."""
    return not names.isdisjoint((*row.languages, *row.roots)) and not (
        row.needs and names.isdisjoint(row.needs)
    )


def _list_names_by_folder(top_folders: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the names and endings in each folder of a project, from the top down,
    up to LSP_SEARCHED_FOLDERS.
    """
    from codeloop.schema.bounds.language_tools import LSP_SEARCHED_FOLDERS

    unread_folders = deque(map(str, top_folders))
    for _ in range(LSP_SEARCHED_FOLDERS.value):
        if not unread_folders:
            return
        names: list[str] = []
        with suppress(OSError), os.scandir(unread_folders.popleft()) as entries:
            for entry in entries:
                name, dot, ending = entry.name.rpartition(".")
                names += (entry.name, dot + ending if name else "")
                is_own_code = entry.name[:1] != "." and entry.name not in _FOREIGN_CODE_FOLDERS
                if is_own_code and entry.is_dir(follow_symlinks=False):
                    unread_folders.append(entry.path)
        yield names


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
