"""The extensions of a project: starts their hosts as configured, and installs their tools and hooks."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import codeloop
from codeloop.app.extended.hooks import PROGRAMS
from codeloop.app.extended.operations import serve_operation
from codeloop.app.services import OpenProject
from codeloop.app.toolbox import BUILTIN
from codeloop.config.project_root import ProjectRoot
from codeloop.extend.hooks.answer_filter import Reach
from codeloop.extend.hooks.config_changes import CONFIG, ask_extensions
from codeloop.extend.hooks.follow import events_in
from codeloop.extend.hooks.hooks import Hooks
from codeloop.extend.hooks.timings import HookTimings
from codeloop.extend.host.extension import Extension
from codeloop.extend.host.host_stream import HostPipes
from codeloop.extend.host.hosts import CarryOut, ExtensionHosts, HostCallbacks, HostKey, log_file, tool_names_of
from codeloop.extend.host.offer_cache import KnownOffers, surroundings_of
from codeloop.extend.host.protocol import VERSION, HostHello, OperationCall
from codeloop.schema.errors import HookRefused
from codeloop.schema.operation import OPERATIONS
from codeloop.workspace.process.program_environment import program_environment
from codeloop.workspace.process.program_log import ProgramLog

FOLDER = "extensions"


def _make_hosts(project: OpenProject) -> ExtensionHosts:
    """Make the hosts of a project's extensions; none is started by that."""
    settings, workspace = project.settings, project.engine.workspace
    project_root = settings.project_root
    environment = program_environment(workspace.environment, {})
    logs: dict[str, ProgramLog] = {}

    def log(name: str) -> ProgramLog:
        return logs.setdefault(name, ProgramLog(log_file(settings.home / FOLDER, name)))

    async def start(key: HostKey, errors: Callable[[bytes], None]) -> HostPipes:
        from codeloop.app.extended.start_host import start_host

        of_user = (Path(each.path) for each in settings.extensions if "/" in each.path and not each.is_project)
        readable = tuple(dict.fromkeys(folder for path in of_user for folder in code_of(path, settings.paths.home)))
        own = settings.paths.data / PROGRAMS / f"extensions-{key.language}"
        return await start_host(workspace, key, environment, own, readable, errors)

    def is_confined(extension: Extension) -> bool:
        extensions = settings.config.sandbox.extensions
        if isinstance(extensions, bool):
            return extensions
        return extension.is_project or is_below_writable(extension, project_root, settings.paths.private_folders)

    def reach(is_confined: bool) -> Reach:
        sandbox = settings.config.sandbox
        is_open = sandbox.extensions is False or sandbox.mode == "off"
        return "project" if is_confined else "all" if is_open else "own"

    async def serve(carry_out: CarryOut, call: OperationCall, is_confined: bool) -> Any:
        return await serve_operation(carry_out, call, reach(is_confined), project_root.root)

    look = partial(surroundings_of, project_root, settings.paths, settings.environment)
    hello = HostHello(
        VERSION,
        str(project_root.directory),
        str(project_root.root),
        {"id": project_root.project_id, "worktree": str(project_root.root)},
        tuple((each.id, each.method, each.path) for each in OPERATIONS),
    )
    callbacks = HostCallbacks(
        KnownOffers(settings.paths.state / FOLDER, look),
        hello,
        start,
        is_confined,
        reach,
        log,
        project.warn,
        serve,
        lambda session, message: project.engine.store.read_context(session).find_agent(message),
        lambda: _take_extensions(project, hosts),
    )
    hosts = ExtensionHosts(settings.extensions, callbacks)
    return hosts


def is_below_writable(extension: Extension, project_root: ProjectRoot, own: Sequence[Path]) -> bool:
    """Return whether an extension of the user's lies in the project, where commands could have written it."""
    path = Path(os.path.realpath(extension.path)) if extension.path.startswith("/") else None
    if path is None or any(path.is_relative_to(os.path.realpath(each)) for each in own):
        return False
    return any(path.is_relative_to(os.path.realpath(each)) for each in (project_root.root, project_root.directory))


def code_of(file: Path, home: Path) -> list[Path]:
    """Return the paths that an extension of the user's loads code from: its folder, packages above, ours.

    A file that lies directly in the home, or above it, is read alone: that folder holds much else.
    """
    paths = (above / name for above in list(file.parents)[:3] for name in ("node_modules", "package.json"))
    ours = (Path(sys.prefix), Path(sys.base_prefix), Path(str(codeloop.__file__)).parent)
    own = file if home.is_relative_to(file.parent) else file.parent
    return [own, *(each for each in paths if each.exists()), *ours]


def _take_extensions(project: OpenProject, hosts: ExtensionHosts) -> None:
    """Replace the extensions' offered tools and hooks by the currently known ones, from the next request on."""
    state = project.services.extensions
    tools, tool_names = hosts.tools(), state.replaced_tools
    origins = {tool: each.name for each in hosts.extensions for tool in tool_names_of(hosts.offers, each)}
    for name in (tool.name for tool in tools if tool.name in BUILTIN and tool.name not in tool_names):
        tool_names.add(name)
        project.warn(f"The tool {name} of {origins[name]} takes the place of the built-in one.")
    project.extend(tools)
    if isinstance(hooks := project.engine.hooks.runner, Hooks):
        hooks.take((*state.rows, *hosts.handlers()))
        answer = project.settings.answer
        are_all_known = hooks.has_handler(CONFIG) and not hosts.unknown
        if are_all_known and answer is not None and not answer.exists() and state.asks_config:
            state.asks_config = False
            hosts.asked.clear()
            project.in_background(_ask_about_config(project, hooks, hosts, answer))
    if any(offer.auth is not None for offer in hosts.offers.values()):
        from codeloop.app.extended.sign_ins import take_sign_ins

        take_sign_ins(project, hosts)
    hosts.follow(partial(events_in, project.engine.store, project.settings.project_root.directory))


async def _ask_about_config(project: OpenProject, hooks: Hooks, hosts: ExtensionHosts, answer: Path) -> None:
    """Store the extensions' changes to the configuration; they count when the project is opened again."""
    try:
        await ask_extensions(hooks, project.settings.loaded, answer)
    except (HookRefused, OSError) as error:
        project.warn(f"The extensions' changes to the configuration are not used: {error}")
    finally:
        hosts.asked.set()


def begin(project: OpenProject) -> None:
    """Start the extensions of a newly opened project."""
    services = project.services
    hosts = services.extensions.hosts = services.keep(_make_hosts(project))
    if isinstance(hooks := project.engine.hooks.runner, Hooks):
        hooks.timings = services.keep(HookTimings(project.settings.home / FOLDER))
    _take_extensions(project, hosts)
    hosts.learn()
