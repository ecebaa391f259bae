"""`codeloop plugin list` and `debug`: the extensions of this directory, what each offers, and why one does not work."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Struct

from codeloop.app.dispatch import serve_extensions
from codeloop.app.extensions.start_extensions import EXTENSIONS_FOLDER
from codeloop.app.project import Project, open_project
from codeloop.app.settings import ProjectSettings, Startup
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.style import align_columns, print_json
from codeloop.cli.target.project import load_settings
from codeloop.config.paths import get_plugin_name
from codeloop.extend.homes import find_homes
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.extend.hooks.timings import HookTiming, read_timings
from codeloop.extend.host.discovery import find_ignored_files
from codeloop.extend.host.extension import Extension
from codeloop.extend.host.host import ExtensionRaised
from codeloop.extend.host.hosts import (
    EMPTY_POLICY_REASON,
    ExtensionHosts,
    is_idle_policy,
    list_tool_names,
    offers_nothing,
)
from codeloop.extend.packages.claude_plugin import ClaudePlugin
from codeloop.extend.packages.find_packages import find_packages
from codeloop.extend.packages.lock_file import resolve_entry
from codeloop.extend.packages.manifest import read_manifest
from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem
from codeloop.workspace.process.program_log import ProgramLog

T = TypeVar("T")
_EMPTY_EXPLANATION = (
    "It was loaded and brings nothing here: no tool, no hook, no sign-in. Perhaps it lacks its settings."
)
_LOG_CHARS = 4_000
_PAGE_FOLDERS = ("tool", "tools", "plugin", "plugins", "agent", "agents", "command", "commands", "skill", "skills")


class PluginRow(Struct, frozen=True, rename={"from_": "from"}):
    """An extension, or a package of some, as it is listed. `state`: ok, empty, fails, needs trust."""

    name: str
    kind: str
    state: str
    tools: list[str]
    hooks: list[str]
    from_: str
    why: str = ""
    sign_ins: list[str] = []
    """The providers at which one signs in with it."""
    sandboxed: bool = True
    """Its code runs in a sandbox."""


@click.command("list")
@JSON_OPTION
def list_plugins(*, as_json: bool) -> None:
    """List the extensions: what each brings, where it is from, and why one does not work."""
    settings = load_settings()
    rows = [*_list_packages(settings), *_run_with_hosts(_list_extensions)]
    rows += [row for row in _list_unusable(settings) if row.name not in {each.name for each in rows}]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("No plugin is installed. Install one: codeloop plugin add NAME. Write one: codeloop plugin new NAME")
        return
    cells = [
        (
            escape_controls(row.name),
            row.kind,
            row.state if row.sandboxed else f"{row.state}, no sandbox",
            one_line(
                ", ".join(
                    [
                        *row.tools,
                        *(f"{hook} (hook)" for hook in row.hooks),
                        *(f"{name} (sign-in)" for name in row.sign_ins),
                    ]
                )
                or "-",
                60,
            ),
            one_line(row.from_, 70),
        )
        for row in rows
    ]
    click.echo(align_columns([("name", "kind", "state", "adds", "from"), *cells]))
    for row in rows:
        if row.why:
            click.echo(f"{escape_controls(row.name)}: {escape_controls(row.why)}")


@click.command()
@click.argument("name")
def debug(name: str) -> None:
    """Load a plugin now: show what it offers, how long that took, its hooks' times, and the end of its host's log."""
    settings = load_settings()
    package = next((row for row in _list_packages(settings) if row.name == name), None)

    async def look(hosts: ExtensionHosts, _project: Project) -> list[str]:
        inside = f"{package.from_}/" if package is not None else ""
        extensions = [
            each for each in hosts.extensions if _has_name(each, name) or (inside and each.path.startswith(inside))
        ]
        if not extensions and package is None:
            raise UsageProblem(
                f"There is no plugin {escape_controls(name)} that runs here. `codeloop plugin list` lists them."
            )
        lines: list[str] = []
        timings = read_timings(settings.home / EXTENSIONS_FOLDER)
        for each in extensions:
            lines += await _try_extension(hosts, each)
            lines += _format_timings([row for row in timings if row.label == each.name])
        for language in dict.fromkeys(each.language for each in extensions):
            logs = sorted((settings.home / EXTENSIONS_FOLDER).glob(f"{language}*.log"))
            for file in (log for log in logs if not log.name.endswith(".old.log")):
                lines += [
                    "",
                    f"{file} ends so:",
                    escape_controls(ProgramLog(file).read()[-_LOG_CHARS:].strip()) or "(nothing)",
                ]
        return lines

    if package is not None:
        click.echo(
            f"{escape_controls(package.name)}: a package in {package.from_} with "
            f"{', '.join(package.tools) or 'nothing'}"
        )
    for line in _run_with_hosts(look):
        click.echo(line)


async def _try_extension(hosts: ExtensionHosts, extension: Extension) -> list[str]:
    start_time = time.monotonic()
    why = await _find_load_failure(hosts, extension)
    duration = f"{(time.monotonic() - start_time) * 1000:.0f} ms"
    head = f"{escape_controls(extension.name)} ({extension.language}, from {escape_controls(extension.origin)})"
    if why:
        return [head, f"  fails after {duration}: {escape_controls(why)}"]
    offer = hosts.offers[extension.name]
    tools = [f"  tool {escape_controls(each.name)}: {one_line(each.description, 90)}" for each in offer.tools]
    hooks = [f"  hook {escape_controls(each.name)}{' (policy)' if each.policy else ''}" for each in offer.hooks]
    return [
        head,
        f"  started and loaded in {duration}",
        *tools,
        *hooks,
        *(f"  problem: {escape_controls(p)}" for p in offer.problems),
    ]


def _format_timings(rows: list[HookTiming]) -> list[str]:
    """Return a table of what was counted at each hook."""
    if not rows:
        return []
    head = ("hook", "calls", "median", "longest", "failures", "late")
    cells = [
        (
            escape_controls(row.hook),
            *map(str, (row.calls, f"{row.median:.1f} ms", f"{row.longest:.1f} ms", row.failures, row.late)),
        )
        for row in rows
    ]
    return [
        "",
        *(f"  {line}" for line in align_columns([head, *cells], frozenset(range(1, len(head)))).splitlines()),
        "",
    ]


async def _find_load_failure(hosts: ExtensionHosts, extension: Extension) -> str:
    """Load an extension now, known or not, and return why that fails; "": it works."""
    try:
        await hosts.load(extension)
    except (HookFailed, ExtensionRaised) as error:
        return str(error)
    return ""


def _make_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _has_name(extension: Extension, name: str) -> bool:
    return name in {extension.name, extension.path, Path(extension.path).name, Path(extension.path).stem}


async def _list_extensions(hosts: ExtensionHosts, project: Project) -> list[PluginRow]:
    boxes, sandbox = project.workspace.boxes, project.settings.config.sandbox.extensions
    await boxes.probe()
    await asyncio.gather(*(hosts.wait_for_offers(), *(_find_load_failure(hosts, each) for each in hosts.unknown)))
    rows: list[PluginRow] = []
    for each in hosts.extensions:
        offer = hosts.offers.get(each.name)
        why = hosts.failures.get(each.name, "")
        if not why and offer is None:
            why = await _find_load_failure(hosts, each)
        hooks = [hook.name for hook in offer.hooks] if offer else []
        state = "fails" if why else "ok"
        if is_idle_policy(hosts.offers, each, hosts.extensions):
            state, why = (
                "fails",
                f"{_make_sentence(EMPTY_POLICY_REASON)} So nothing is sent to a model, and no tool is called.",
            )
        elif offers_nothing(hosts.offers, each):
            state, why = "empty", _EMPTY_EXPLANATION
        signs = [str(offer.auth["provider"])] if offer and offer.auth and "provider" in offer.auth else []
        tools = list_tool_names(hosts.offers, each)
        is_sandboxed = boxes.is_used(True if sandbox is None else sandbox)
        rows.append(PluginRow(each.name, each.language, state, tools, hooks, each.origin, why, signs, is_sandboxed))
    return rows


def _list_packages(settings: ProjectSettings) -> list[PluginRow]:
    packages = find_packages(settings.loaded, settings.project_root.root, settings.paths)
    rows: list[PluginRow] = []
    for home in packages.homes:
        manifest = read_manifest(home.path)
        if manifest is not None:
            brings = [f"{name}/" for name in _PAGE_FOLDERS if name in home.names]
            plugin = ClaudePlugin(home.path, home.names) if home.is_claude else None
            brings += [f"mcp {name}" for name in (plugin.servers if plugin else manifest.mcp)]
            hooks = list(plugin.hooks) if plugin else []
            rows.append(PluginRow(manifest.name, "package", "ok", brings, hooks, str(home.path)))
    return rows


def _list_unusable(settings: ProjectSettings) -> list[PluginRow]:
    """Return rows for plugins that do not run: entries that lead nowhere, files of an untrusted project."""
    rows: list[PluginRow] = []
    for index, entry in enumerate(settings.config.plugin):
        plugin = get_plugin_name(entry)
        origin = settings.loaded.provenance.get(f"plugin[{index}]")
        base = origin.layer.base if origin is not None else settings.project_root.root
        if plugin is not None and (why := resolve_entry(plugin, base, settings.paths)[1]):
            rows.append(PluginRow(plugin, "plugin", "fails", [], [], str(origin or "plugin"), why))
    if not settings.trusted:
        homes, why = find_homes(settings.project_root, settings.paths), "Trust this directory: codeloop trust"
        files = find_ignored_files(homes, settings.project_root.root)
        rows += [PluginRow(path, "plugin", "needs trust", [], [], path, why) for path in files]
    return rows


def _run_with_hosts(look: Callable[[ExtensionHosts, Project], Awaitable[list[T]]]) -> list[T]:
    async def open_and_look() -> list[T]:
        project = await open_project(Startup(directory=Path.cwd()))
        serve_extensions(project)
        hosts = project.services.extensions.hosts
        try:
            return await look(hosts, project) if hosts is not None else []
        finally:
            await project.close()

    return asyncio.run(open_and_look())
