"""`codeloop plugin list` and `codeloop plugin debug`: what each extension of this directory adds,
and why one fails.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Struct

from codeloop.app.dispatch import serve_extensions
from codeloop.app.extensions.hooks import PROGRAMS_FOLDER
from codeloop.app.extensions.start_extensions import EXTENSIONS_FOLDER
from codeloop.app.project import Project, open_project
from codeloop.app.settings import ProjectSettings, Startup
from codeloop.cli.commands.extend.plugin_allow import EXTENSION_FOLDERS
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.project import load_settings
from codeloop.config.paths import get_plugin_name
from codeloop.extend.homes import find_homes
from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.hooks.timings import HookTiming, read_timings
from codeloop.extend.host.discovery import find_ignored_files
from codeloop.extend.host.extension import Extension
from codeloop.extend.host.host_callbacks import ALLOW_COMMAND
from codeloop.extend.host.hosts import EMPTY_POLICY_REASON, ExtensionHosts
from codeloop.extend.host.offers import is_idle_policy, list_tool_names, offers_nothing
from codeloop.extend.packages.claude_plugin import ClaudePlugin
from codeloop.extend.packages.find_packages import find_packages
from codeloop.extend.packages.manifest import read_manifest
from codeloop.extend.packages.plugin_entries import resolve_entry
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem
from codeloop.workspace.process.program_log import ProgramLog
from codeloop.workspace.sandbox.helper_refusals import describe_refusals, read_refusals

T = TypeVar("T")
_EMPTY_EXPLANATION = (
    "It was loaded and brings nothing here: no tool, no hook, no sign-in. "
    "Perhaps it lacks its settings."
)
# Characters of the end of a log.
_LOG_CHARS = 4_000
# The folders of a package that are listed as what it adds.
_PAGE_FOLDERS = (
    "tool",
    "tools",
    "plugin",
    "plugins",
    "agent",
    "agents",
    "command",
    "commands",
    "skill",
    "skills",
)


class PluginRow(Struct, frozen=True, rename={"from_": "from"}):
    """A row of `plugin list`: an extension, or a package that contains extensions.

    `state`: `ok`, `empty`, `fails` or `needs trust`. `from_`: the file, folder or package that it
    was found in. `why`: the reason of a state other than `ok`. `sign_ins`: the providers at which
    it offers to sign in. `sandboxed`: its code runs in a sandbox.
    """

    name: str
    kind: str
    state: str
    tools: list[str]
    hooks: list[str]
    from_: str
    why: str = ""
    sign_ins: list[str] = []
    sandboxed: bool = True


@click.command("list")
@JSON_OPTION
def list_plugins(*, as_json: bool) -> None:
    """List the extensions: what each brings, where it is from, and why one does not work."""
    settings = load_settings()
    rows = [*_list_packages(settings), *_run_with_hosts(_list_extensions)]
    names = {row.name for row in rows}
    rows += [row for row in _list_unusable(settings) if row.name not in names]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(
            "No plugin is installed. Install one: codeloop plugin add NAME. Write one: codeloop plugin new NAME"
        )
    else:
        heading = ("name", "kind", "state", "adds", "from")
        click.echo(align_columns([heading, *map(_format_row, rows)]))
    for row in rows:
        if row.why:
            click.echo(f"{escape_controls(row.name)}: {escape_controls(row.why)}")
    for line in describe_extension_sandboxes(settings):
        click.echo(line)


def describe_extension_sandboxes(settings: ProjectSettings) -> list[str]:
    """Return a line on what the user's extensions and hooks may do beyond the usual,
    and one for each sandbox that refused something.
    """
    extensions = settings.config.sandbox.extensions
    lines: list[str] = []
    if extensions is not None and not isinstance(extensions, bool):
        granted = [
            f"{verb} {', '.join(paths)}"
            for verb, paths in (("read", extensions.readable), ("write", extensions.writable))
            if paths
        ]
        lines += [f"sandbox: may {'; may '.join(granted)}"] if granted else []
    for name in EXTENSION_FOLDERS:
        refusals = read_refusals(settings.paths.data / PROGRAMS_FOLDER / name)
        if refusals:
            words = describe_refusals(refusals, ALLOW_COMMAND, settings.paths.home)
            lines.append(f"{name}: {words}")
    return [escape_controls(each) for each in lines]


def _format_row(row: PluginRow) -> tuple[str, ...]:
    hooks = [f"{name} (hook)" for name in row.hooks]
    sign_ins = [f"{name} (sign-in)" for name in row.sign_ins]
    additions = ", ".join([*row.tools, *hooks, *sign_ins]) or "-"
    state = row.state if row.sandboxed else f"{row.state}, no sandbox"
    return (
        escape_controls(row.name),
        row.kind,
        state,
        one_line(additions, 60),
        one_line(row.from_, 70),
    )


@click.command()
@click.argument("name")
def debug(name: str) -> None:
    """Load a plugin now: show what it offers, how long that took, its hooks' times,
    and the end of its host's log.
    """
    settings = load_settings()
    package = next((row for row in _list_packages(settings) if row.name == name), None)

    async def describe_extensions(hosts: ExtensionHosts, _project: Project) -> list[str]:
        folder = f"{package.from_}/" if package is not None else ""
        extensions = [
            extension
            for extension in hosts.extensions
            if _has_name(extension, name) or (folder and extension.path.startswith(folder))
        ]
        if not extensions and package is None:
            raise UsageProblem(
                f"There is no plugin {escape_controls(name)} that runs here. `codeloop plugin list` lists them."
            )
        lines: list[str] = []
        timings = read_timings(settings.home / EXTENSIONS_FOLDER)
        for extension in extensions:
            lines += await _try_extension(hosts, extension)
            lines += _format_timings([row for row in timings if row.label == extension.name])
        # The extensions of a language share hosts, whose logs are named by it.
        for language in dict.fromkeys(extension.language for extension in extensions):
            lines += _format_logs(settings.home / EXTENSIONS_FOLDER, language)
        return lines

    if package is not None:
        click.echo(
            f"{escape_controls(package.name)}: a package in {package.from_} with "
            f"{', '.join(package.tools) or 'nothing'}"
        )
    for line in _run_with_hosts(describe_extensions):
        click.echo(line)


def _format_logs(folder: Path, language: str) -> list[str]:
    """Return the ends of the logs of a language's hosts."""
    lines: list[str] = []
    for file in sorted(folder.glob(f"{language}*.log")):
        # The log's `read` includes the rotated file.
        if not file.name.endswith(".old.log"):
            text = escape_controls(ProgramLog(file).read()[-_LOG_CHARS:].strip())
            lines += ["", f"{file} ends so:", text or "(nothing)"]
    return lines


async def _try_extension(hosts: ExtensionHosts, extension: Extension) -> list[str]:
    """Load an extension, and return lines about what it offers and how long that took."""
    start_time = time.monotonic()
    failure = await _load_extension(hosts, extension)
    duration = f"{(time.monotonic() - start_time) * 1000:.0f} ms"
    heading = f"{escape_controls(extension.name)} ({extension.language}, from {escape_controls(extension.origin)})"
    if failure:
        return [heading, f"  fails after {duration}: {escape_controls(failure)}"]
    offer = hosts.offers[extension.name]
    tools = [
        f"  tool {escape_controls(tool.name)}: {one_line(tool.description, 90)}"
        for tool in offer.tools
    ]
    hooks = [
        f"  hook {escape_controls(hook.name)}{' (policy)' if hook.policy else ''}"
        for hook in offer.hooks
    ]
    problems = [f"  problem: {escape_controls(problem)}" for problem in offer.problems]
    return [heading, f"  started and loaded in {duration}", *tools, *hooks, *problems]


def _format_timings(rows: list[HookTiming]) -> list[str]:
    """Return the lines of a table of the calls, times and failures of each hook;
    none without rows.
    """
    if not rows:
        return []
    header = ("hook", "calls", "median", "longest", "failures", "late")
    cells = [
        (
            escape_controls(row.hook),
            str(row.calls),
            f"{row.median:.1f} ms",
            f"{row.longest:.1f} ms",
            str(row.failures),
            str(row.late),
        )
        for row in rows
    ]
    table = align_columns([header, *cells], right=frozenset(range(1, len(header))))
    return ["", *(f"  {line}" for line in table.splitlines()), ""]


async def _load_extension(hosts: ExtensionHosts, extension: Extension) -> str:
    """Load an extension, also one that was loaded before, and return why that fails;
    "": it works.
    """
    try:
        await hosts.load(extension)
    except (HookFailed, ExtensionRaised) as error:
        return str(error)
    return ""


def _make_sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def _has_name(extension: Extension, name: str) -> bool:
    """Return whether a user may mean an extension by this name: it has it, or its file does."""
    return name in {
        extension.name,
        extension.path,
        Path(extension.path).name,
        Path(extension.path).stem,
    }


async def _list_extensions(hosts: ExtensionHosts, project: Project) -> list[PluginRow]:
    """Load every extension, and return a row for each."""
    program_sandboxes, sandbox = (
        project.workspace.program_sandboxes,
        project.settings.config.sandbox.extensions,
    )
    # Whether sandboxes work here is only known after one was made.
    await program_sandboxes.probe()
    is_sandboxed = program_sandboxes.is_sandboxed(True if sandbox is None else sandbox)
    await asyncio.gather(
        hosts.wait_for_offers(), *(_load_extension(hosts, extension) for extension in hosts.pending)
    )
    rows: list[PluginRow] = []
    for extension in hosts.extensions:
        offer = hosts.offers.get(extension.name)
        why = hosts.failures.get(extension.name, "")
        if not why and offer is None:
            why = await _load_extension(hosts, extension)
        state = "fails" if why else "ok"
        if is_idle_policy(hosts.offers, extension, hosts.extensions):
            # A policy that can't decide must not allow everything: turns are refused
            # while it is installed.
            state = "fails"
            why = f"{_make_sentence(EMPTY_POLICY_REASON)} So nothing is sent to a model, and no tool is called."
        elif offers_nothing(hosts.offers, extension):
            state, why = "empty", _EMPTY_EXPLANATION
        sign_ins = (
            [str(offer.auth["provider"])]
            if offer and offer.auth and "provider" in offer.auth
            else []
        )
        row = PluginRow(
            name=extension.name,
            kind=extension.language,
            state=state,
            tools=list_tool_names(hosts.offers, extension),
            hooks=[hook.name for hook in offer.hooks] if offer else [],
            from_=extension.origin,
            why=why,
            sign_ins=sign_ins,
            sandboxed=is_sandboxed,
        )
        rows.append(row)
    return rows


def _list_packages(settings: ProjectSettings) -> list[PluginRow]:
    """Return a row for each package that has a manifest, codeloop's own or one of Claude Code."""
    packages = find_packages(settings.loaded, settings.project_root.root, settings.paths)
    rows: list[PluginRow] = []
    for home in packages.homes:
        manifest = read_manifest(home.path)
        if manifest is not None:
            additions = [f"{name}/" for name in _PAGE_FOLDERS if name in home.names]
            plugin = ClaudePlugin(home.path, home.names) if home.is_claude else None
            additions += [f"mcp {name}" for name in (plugin.servers if plugin else manifest.mcp)]
            additions += [f"lsp {name}" for name in (plugin.language_servers if plugin else ())]
            hooks = list(plugin.hooks) if plugin else []
            rows.append(
                PluginRow(
                    name=manifest.name,
                    kind="package",
                    state="ok",
                    tools=additions,
                    hooks=hooks,
                    from_=str(home.path),
                )
            )
    return rows


def _list_unusable(settings: ProjectSettings) -> list[PluginRow]:
    """Return rows for plugins that are not loaded: entries that lead nowhere,
    and files of an untrusted project.
    """
    rows: list[PluginRow] = []
    for index, entry in enumerate(settings.config.plugin):
        plugin = get_plugin_name(entry)
        origin = settings.loaded.provenance.get(f"plugin[{index}]")
        base = origin.layer.base if origin is not None else settings.project_root.root
        if plugin is not None and (why := resolve_entry(plugin, base, settings.paths)[1]):
            rows.append(
                _make_unusable_row(plugin, state="fails", origin=str(origin or "plugin"), why=why)
            )
    if not settings.trusted:
        homes = find_homes(settings.project_root, settings.paths)
        advice = "Trust this directory: codeloop trust"
        rows += [
            _make_unusable_row(file, state="needs trust", origin=file, why=advice)
            for file in find_ignored_files(homes, settings.project_root.root)
        ]
    return rows


def _make_unusable_row(name: str, *, state: str, origin: str, why: str) -> PluginRow:
    return PluginRow(
        name=name, kind="plugin", state=state, tools=[], hooks=[], from_=origin, why=why
    )


def _run_with_hosts(command: Callable[[ExtensionHosts, Project], Awaitable[list[T]]]) -> list[T]:
    """Open the project, run `command` on its extension hosts, and close it;
    an empty list if it has no extension.
    """

    async def open_and_run() -> list[T]:
        project = await open_project(Startup(directory=Path.cwd()))
        # Extensions may call operations while they are loaded.
        serve_extensions(project)
        hosts = project.services.extensions.hosts
        try:
            return await command(hosts, project) if hosts is not None else []
        finally:
            await project.close()

    return asyncio.run(open_and_run())
