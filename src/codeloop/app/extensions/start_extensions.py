"""Starts the extensions of a project, in hosts that are confined as configured,
and installs what they offer.

`app.project` imports this module for a project that has extensions.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import codeloop
from codeloop.app.extensions.extension_operations import serve_operation
from codeloop.app.extensions.hooks import PROGRAMS_FOLDER
from codeloop.app.services import OpenProject
from codeloop.app.settings import ProjectSettings, digest_surroundings
from codeloop.app.toolbox import BUILTIN_TOOLS
from codeloop.config.project_root import ProjectRoot
from codeloop.extend.hooks.answer_filter import Reach
from codeloop.extend.hooks.config_changes import CONFIG_HOOK, ask_extensions
from codeloop.extend.hooks.directory_events import follow_directory
from codeloop.extend.hooks.hooks import Hooks
from codeloop.extend.hooks.timings import HookTimings
from codeloop.extend.host.extension import Extension
from codeloop.extend.host.host_callbacks import (
    ALLOW_COMMAND,
    HOSTS_FOLDER,
    HostCallbacks,
    HostKey,
    RunOperation,
    get_log_path,
)
from codeloop.extend.host.hosts import ExtensionHosts
from codeloop.extend.host.offer_cache import OfferCache
from codeloop.extend.host.offers import list_tool_names
from codeloop.extend.host.protocol import VERSION, HostHello, OperationCall
from codeloop.kit.program import Program
from codeloop.schema.errors import HookRefused
from codeloop.schema.operation_table import OPERATIONS
from codeloop.tool.tool import Tool
from codeloop.workspace.process.program_environment import make_program_environment
from codeloop.workspace.process.program_log import ProgramLog

EXTENSIONS_FOLDER = "extensions"
"""Below a project's folder, it has the logs and timings of extensions;
below the user's state, their known offers.
"""
_PACKAGE_LEVELS = 3
"""The folders above an extension's file, its own first, in which it may have packages."""


def _make_hosts(project: OpenProject) -> ExtensionHosts:
    """Make the hosts of a project's extensions; none is started by that."""
    settings, workspace = project.settings, project.engine.workspace
    project_root = settings.project_root
    environment = make_program_environment(workspace.environment, {})
    # A host that is started again keeps its log, which knows the output of the last start.
    logs: dict[str, ProgramLog] = {}

    def open_log(name: str) -> ProgramLog:
        return logs.setdefault(
            name, ProgramLog(get_log_path(settings.home / EXTENSIONS_FOLDER, name))
        )

    async def start(key: HostKey, on_stderr: Callable[[bytes], None]) -> Program:
        from codeloop.app.extensions.start_host import start_host

        readable = _list_readable_paths(settings)
        writable_folder = settings.paths.data / PROGRAMS_FOLDER / f"{HOSTS_FOLDER}-{key.language}"
        return await start_host(workspace, key, environment, writable_folder, readable, on_stderr)

    def is_confined(extension: Extension) -> bool:
        # Those of a project always are: they load files that the model edits.
        if extension.is_project or settings.config.sandbox.extensions is True:
            return True
        is_exempt = settings.config.sandbox.extensions is False
        return not is_exempt and is_in_project(
            extension, project_root, settings.paths.private_folders
        )

    def find_reach(is_host_confined: bool) -> Reach:
        if is_host_confined:
            return "project"
        sandbox = settings.config.sandbox
        is_open = sandbox.extensions is False or sandbox.mode == "off"
        return "all" if is_open else "own"

    async def serve(carry_out: RunOperation, call: OperationCall, is_host_confined: bool) -> Any:
        return await serve_operation(
            carry_out, call, find_reach(is_host_confined), project_root.root
        )

    callbacks = HostCallbacks(
        offer_cache=OfferCache(
            settings.paths.state / EXTENSIONS_FOLDER, partial(digest_surroundings, settings)
        ),
        hello=_make_hello(project_root),
        start=start,
        is_confined=is_confined,
        find_reach=find_reach,
        open_log=open_log,
        warn=partial(_warn, project),
        serve=serve,
        find_agent=lambda session, message: project.engine.store.read_context(session).find_agent(
            message
        ),
        on_change=lambda: _install_offers(project, hosts),
    )
    hosts = ExtensionHosts(settings.extensions, callbacks)
    return hosts


def _warn(project: OpenProject, text: str) -> None:
    """Show a line of a host to the user, with what its sandbox refused."""
    # Imported late: most hosts have nothing to warn of.
    from codeloop.workspace.process.program_refusals import explain_program

    sandboxes = project.engine.workspace.program_sandboxes
    note = explain_program(sandboxes, HOSTS_FOLDER, text, ALLOW_COMMAND)
    project.warn(f"{text.rstrip('.')}. {note}" if note else text)


def _make_hello(project_root: ProjectRoot) -> HostHello:
    """Make the first message to each host: the directory, and the operations."""
    return HostHello(
        version=VERSION,
        directory=project_root.directory_name,
        root=project_root.root_name,
        project={"id": project_root.project_id, "worktree": project_root.root_name},
        operations=tuple((each.id, each.method, each.path) for each in OPERATIONS),
    )


def _list_readable_paths(settings: ProjectSettings) -> tuple[Path, ...]:
    """Return the paths that the user's extensions load code from."""
    # The path of an installed plugin is `module:name`, which is not a file.
    files = [
        Path(each.path) for each in settings.extensions if "/" in each.path and not each.is_project
    ]
    code_paths = (path for file in files for path in list_code_paths(file, settings.paths.home))
    return tuple(dict.fromkeys(code_paths))


def is_in_project(
    extension: Extension, project_root: ProjectRoot, own_folders: Sequence[Path]
) -> bool:
    """Return whether the file of a user's extension is in the project,
    where commands could have written it.

    `own_folders`: codeloop's own folders, which commands can't write even when
    they are in the project.
    """
    path = Path(os.path.realpath(extension.path)) if extension.path.startswith("/") else None
    if path is None or any(path.is_relative_to(os.path.realpath(each)) for each in own_folders):
        return False
    return any(
        path.is_relative_to(os.path.realpath(each))
        for each in (project_root.root, project_root.directory)
    )


def list_code_paths(file: Path, home: Path) -> list[Path]:
    """Return the paths that an extension of the user loads code from: its folder,
    packages above it, and codeloop's.

    Of an extension directly in the home folder, or above it,
    only the file: that folder has much else.
    """
    folders = list(file.parents)[:_PACKAGE_LEVELS]
    package_paths = (
        folder / name for folder in folders for name in ("node_modules", "package.json")
    )
    interpreter_paths = (
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(str(codeloop.__file__)).parent,
    )
    extension_path = file if home.is_relative_to(file.parent) else file.parent
    return [extension_path, *(path for path in package_paths if path.exists()), *interpreter_paths]


def _install_offers(project: OpenProject, hosts: ExtensionHosts) -> None:
    """Replace the extensions' tools, hooks and sign-ins by the currently known ones,
    from the next request on.
    """
    tools = hosts.make_tools()
    _warn_of_replaced_tools(project, hosts, tools)
    project.offer_extension_tools(tools)
    if isinstance(hooks := project.engine.hooks.runner, Hooks):
        hooks.set_handlers(
            (*project.services.extensions.configured_handlers, *hosts.make_handlers())
        )
        _start_asking_about_config(project, hosts, hooks)
    if any(offer.auth is not None for offer in hosts.offers.values()):
        _install_sign_ins(project, hosts)
    hosts.follow(
        partial(follow_directory, project.engine.store, project.settings.project_root.directory)
    )


def _warn_of_replaced_tools(
    project: OpenProject, hosts: ExtensionHosts, tools: Sequence[Tool]
) -> None:
    """Warn once of each built-in tool that an extension replaces."""
    warned_names = project.services.extensions.replaced_tools
    owners = {
        tool: each.name for each in hosts.extensions for tool in list_tool_names(hosts.offers, each)
    }
    for tool in tools:
        if tool.name in BUILTIN_TOOLS and tool.name not in warned_names:
            warned_names.add(tool.name)
            project.warn(
                f"The tool {tool.name} of {owners[tool.name]} takes the place of the built-in one."
            )


def _install_sign_ins(project: OpenProject, hosts: ExtensionHosts) -> None:
    """Sign in with the plugins that are known now, but not with those of the project:
    they get no user's credential.
    """
    # Imported late, since it loads the room of models, and few plugins sign in.
    from codeloop.app.models.plugin_sign_in import SignInOffer, SignInPlugin

    plugins: list[SignInPlugin] = []
    for each in hosts.extensions:
        auth = hosts.offers[each.name].auth if each.name in hosts.offers else None
        if auth is None or each.is_project:
            continue
        try:
            offer = msgspec.convert(auth, SignInOffer)
        except msgspec.ValidationError as error:
            project.warn(f"{each.name}: its `auth` is invalid: {error}")
            continue
        plugins.append(SignInPlugin(offer, hosts.get_host(hosts.get_key(each)), each.load_spec))
    project.services.plugin_sign_ins.set_plugins(plugins)


def _start_asking_about_config(project: OpenProject, hosts: ExtensionHosts, hooks: Hooks) -> None:
    """Ask the extensions for their changes to the configuration, once,
    if no earlier run has stored the answer.
    """
    state, file = project.services.extensions, project.settings.config_changes_file
    # The answers of all extensions are stored as one file, so all must be known.
    are_all_known = hooks.has_handler(CONFIG_HOOK) and not hosts.pending
    if (
        are_all_known
        and file is not None
        and not file.exists()
        and not state.has_asked_about_config
    ):
        state.has_asked_about_config = True
        hosts.config_answered.clear()
        project.run_in_background(_ask_about_config(project, hooks, hosts, file))


async def _ask_about_config(
    project: OpenProject, hooks: Hooks, hosts: ExtensionHosts, file: Path
) -> None:
    """Store the extensions' changes to the configuration;
    they count when the project is opened again.
    """
    try:
        await ask_extensions(hooks, project.settings.loaded, file)
    except (HookRefused, OSError) as error:
        project.warn(f"The extensions' changes to the configuration are not used: {error}")
    finally:
        hosts.config_answered.set()


def start_extensions(project: OpenProject) -> None:
    """Start the extensions of a newly opened project."""
    services = project.services
    hosts = services.extensions.hosts = services.close_with_project(_make_hosts(project))
    if isinstance(hooks := project.engine.hooks.runner, Hooks):
        hooks.timings = services.close_with_project(
            HookTimings(project.settings.home / EXTENSIONS_FOLDER)
        )
    # Offers of earlier runs are remembered: their tools are there at once,
    # before any host has started.
    _install_offers(project, hosts)
    hosts.start_loading()
