"""Builds the tools of a project, in the order in which models see them."""

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
from codeloop.extend.agents import naming_subagents
from codeloop.kit.processes import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.kit.small_files import expand_user_path
from codeloop.schema.agent import Agent
from codeloop.schema.bounds.language_tools import LSP_SEARCHED_FOLDERS
from codeloop.schema.config import SearchConfig
from codeloop.schema.wire import JSON, replace
from codeloop.tool import builtin
from codeloop.tool.builtin.session.batch import make_batch_tool
from codeloop.tool.tool import BuiltinTool, Tool
from codeloop.tool.toolbox import ServerTools, Toolbox
from codeloop.tool.web.providers import choose_provider

BUILTIN = {
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
"""Where each tool is; its module is imported when it is first called."""

_FOREIGN_CODE = frozenset(("node_modules", "venv", "env", "vendor", "__pycache__"))
"""Folders of code that is not the project's own."""
_SERVERS = Path(str(codeloop.__file__)).with_name("lsp") / "servers" / "servers.json"
PARAMETERS = Path(str(builtin.__file__)).with_name("parameters.json")


class BuiltinToolSchema(Struct, frozen=True):
    """What `make tools` writes of a tool: the name that rules know it by, and the schema that models read."""

    permission: str
    parameters: JSON


@cache
def builtin_tools() -> tuple[BuiltinTool, ...]:
    """Return the rows of the built-in tools."""
    offers = msgspec.json.decode(PARAMETERS.read_bytes(), type=dict[str, BuiltinToolSchema])
    return tuple(
        BuiltinTool(name, target, offers[name].permission, offers[name].parameters) for name, target in BUILTIN.items()
    )


def toolbox_of(
    more: Iterable[Tool] = (),
    agents: dict[str, Agent] | None = None,
    servers: ServerTools | None = None,
    without: frozenset[str] = frozenset(),
) -> Toolbox:
    """Return the built-in tools and those of the project; `task` names the subagents, `batch` runs any tool.

    Of two with the same name the later one counts, in the place of the first.
    """
    agents_by_name = agents or {}
    rows = (
        replace(row, build_description=naming_subagents(row.description, agents_by_name))
        if row.name == "task" and agents_by_name
        else row
        for row in builtin_tools()
        if row.name not in without
    )
    tools = tuple({tool.name: tool for tool in (*rows, *more)}.values())
    all_tools = (*tools, make_batch_tool(Toolbox(tools)))
    return Toolbox(all_tools) if servers is None else Toolbox(all_tools, servers.fit, servers.find)


def search_tools(settings: SearchConfig | None, environment: Mapping[str, str]) -> tuple[Tool, ...]:
    """Return the tools of the search service that is chosen; none when none is."""
    provider = choose_provider(settings, environment)
    if provider is None:
        return ()
    from codeloop.tool.builtin.web.websearch import make_search_tools

    return make_search_tools(provider, settings, environment)


class _Row(Struct, frozen=True):
    """What of a language server's row says whether one can run here; see `lsp.servers.server_row`."""

    name: str
    languages: dict[str, str]
    commands: list[list[str]]
    roots: list[str] = []
    needs: list[str] = []
    packages: dict[str, str] = {}
    runs_project_code: bool = False
    is_linter: bool = False


def has_language_server(settings: ProjectSettings) -> bool:
    """Return whether a server that knows definitions can run for a file in the project's upper folders.

    Only looks: none is started. A linter reports problems with each edit and answers no other question.
    """
    lsp_config, project_root = settings.config.lsp, settings.project_root
    if lsp_config is False:
        return False
    tops = dict.fromkeys((project_root.directory, project_root.root))
    rows = [row for row in msgspec.json.decode(_SERVERS.read_bytes(), type=list[_Row]) if not row.is_linter]
    if lsp_config and lsp_config is not True:
        own = {name: each for name, each in lsp_config.items() if each.command or each.disabled}
        rows = [row for row in rows if row.name not in own or not own[row.name].disabled]
        rows += [
            _Row(name, dict.fromkeys(each.extensions or (), ""), [each.command or []])
            for name, each in own.items()
            if not each.disabled
        ]
    if not settings.trusted:
        rows = [row for row in rows if not row.runs_project_code]
    folders = [str(settings.paths.data / "lsp" / name) for name in ("bin", "node_modules/.bin")]
    folders += [str(top / name) for top in tops for name in PROJECT_PROGRAM_FOLDERS] if settings.trusted else []
    path = os.pathsep.join((*folders, settings.environment.get("PATH", "")))
    usable = [row for row in rows if _has_program(row, project_root.root, path)]
    names: set[str] = set()
    for folder in _list_folders(tops) if usable else ():
        names.update(folder)
        if any(_is_served(row, names) for row in usable):
            return True
    return False


def _has_program(row: _Row, root: Path, path: str) -> bool:
    for name in dict.fromkeys(command[0] for command in row.commands if command):
        program_path = str(root / expand_user_path(name)) if "/" in name else find_program(name, path, in_project=True)
        if program_path is not None and os.access(program_path, os.X_OK):
            from codeloop.lsp.servers.program_check import has_server

            if has_server(program_path, row.packages):
                return True
    return False


def _is_served(row: _Row, names: set[str]) -> bool:
    """Return whether names of files and their endings hold what a server serves."""
    return not names.isdisjoint((*row.languages, *row.roots)) and not (row.needs and names.isdisjoint(row.needs))


def _list_folders(tops: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the names and endings in each folder of a project, from the top down, as many as may be looked at."""
    waiting = deque(map(str, tops))
    for _ in range(LSP_SEARCHED_FOLDERS.value):
        if not waiting:
            return
        folders: list[str] = []
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in entries:
                name, dot, ending = entry.name.rpartition(".")
                folders += (entry.name, dot + ending if name else "")
                is_code = entry.name[:1] != "." and entry.name not in _FOREIGN_CODE
                if is_code and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        yield folders
