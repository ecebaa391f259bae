"""`codeloop debug`: shows the sandbox, the log, the configuration, paths, limits and snapshots.

`debug permission` is in `debug_permission.py`.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from codeloop.cli.commands.examine.debug_permission import debug_permission
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import CONFIG_OPTION, JSON_OPTION, make_completion
from codeloop.cli.output.columns import align_columns
from codeloop.cli.target.process_log import LOG_FILE_NAME, SERVER_LOG_NAME
from codeloop.cli.target.project import run_with_local_client
from codeloop.client.local import LocalClient
from codeloop.config.load import LoadedConfig, load_config
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.config.redact import mask_secrets
from codeloop.config.sources import format_keys
from codeloop.config.trust.store import TrustState, find_trust_state
from codeloop.extend.homes import find_homes
from codeloop.extend.pages.page_layers import find_pages
from codeloop.kit.jsonc import KeyPath, is_list, is_object
from codeloop.kit.small_files import read_start
from codeloop.kit.text.terminal_text import escape_controls, escape_json_controls
from codeloop.schema.bounds.all_limits import list_limits
from codeloop.schema.config import Config
from codeloop.schema.limits import SERVER_LOG, SERVER_LOG_LINE
from codeloop.schema.wire import encode_json, replace
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox_report import SandboxReport, make_report

# Seconds between two reads of a log that is followed.
FOLLOW_INTERVAL = 0.25
# Shown for `sandbox-exec`, the sandbox of macOS.
UNTRIED_BACKEND_NOTE = (
    "which the authors have not tried on a Mac: rely on what is tried below alone"
)


@click.group(cls=CommandGroup)
def debug() -> None:
    """Show configuration, paths, limits and the sandbox."""


@debug.command("sandbox")
@CONFIG_OPTION
@JSON_OPTION
def show_sandbox(*, config: Path | None, as_json: bool) -> None:
    """Show what commands may do here, and try whether that holds; exit code 1 when it does not."""
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    is_trusted = find_trust_state(paths, project_root.root, project_root.directory).is_trusted
    configuration = load_config(
        project_root, paths, config_file=config, environment=os.environ, trusted=is_trusted
    )
    scratch = project_root.get_scratch_folder(paths.get_project_folder(project_root.project_id))
    policy_input = PolicyInput(
        project_root.root, project_root.directory, scratch, dict(os.environ), paths.private_folders
    )
    report = asyncio.run(make_report(policy_input, configuration.config.sandbox))
    if as_json:
        # `holds` is a property, which no encoder writes.
        click.echo(encode_json({**msgspec.to_builtins(report), "holds": report.holds}))
    else:
        click.echo(escape_controls(_format_report(report)))
    if not report.holds:
        raise SystemExit(1)


def _format_report(report: SandboxReport) -> str:
    rows = [
        ("mode", report.mode),
        ("enforced by", report.backend or "nothing: no sandbox can be had here"),
    ]
    if report.backend == "sandbox-exec":
        rows.append(("", UNTRIED_BACKEND_NOTE))
    rows += [(f"not by {kind}", why) for kind, why in report.refused.items()]
    rows += [
        ("can't" if index == 0 else "", clause) for index, clause in enumerate(report.shortcomings)
    ]
    rows += [
        (
            "network",
            report.network + (" (the registries and yours)" if report.network == "hosts" else ""),
        )
    ]
    for name in ("writable", "layered", "replaced", "protected", "hidden"):
        paths: list[str] = getattr(report, name)
        # Only the first path has the name before it.
        rows += [(name if index == 0 else "", path) for index, path in enumerate(paths)]
    rows += (
        [("variables", f"hidden, since they hold secrets: {', '.join(report.variables)}")]
        if report.variables
        else []
    )
    lines = [align_columns(rows), "", "tried, each by a program in the sandbox:"]
    lines += [
        f"  {'ok' if attempt.ok else 'FAILED':<7} {attempt.what}" for attempt in report.attempts
    ]
    return "\n".join(lines if report.attempts else lines[:1])


@debug.command("logs")
@click.option(
    "-n",
    "lines",
    type=click.IntRange(0, 100_000),
    default=50,
    show_default=True,
    help="How many lines.",
)
@click.option("-f", "--follow", is_flag=True, help="Show new lines as they come, until Ctrl-C.")
@click.option(
    "-s",
    "--session",
    metavar="ID",
    shell_complete=make_completion("session"),
    help="Only lines about a session.",
)
@click.option(
    "--server",
    is_flag=True,
    help="The log of servers, instead of that of runs and the terminal UI.",
)
@click.option("--path", "only_path", is_flag=True, help="Print only where the file is.")
def show_logs(
    lines: int, session: str | None, *, follow: bool, server: bool, only_path: bool
) -> None:
    """Show the end of the log: failed requests, tools and servers, and crashes.
    No prompt and no key is in it.
    """
    path = find_paths(os.environ).log_folder / (SERVER_LOG_NAME if server else LOG_FILE_NAME)
    if only_path:
        click.echo(escape_controls(str(path)))
        return
    click.echo(
        escape_controls(f"{path}{'' if path.exists() else ' (nothing was logged yet)'}"), err=True
    )
    matching_lines = [line for line in _read_log_lines(path) if session is None or session in line]
    # Not `[-lines:]`, which would show all of them for 0.
    for line in matching_lines[max(len(matching_lines) - lines, 0) :]:
        click.echo(escape_controls(line))
    if follow:
        _show_new_log_lines(path, session)


def _read_log_lines(path: Path) -> list[str]:
    """Return the lines of a log, oldest first, the rotated file included."""
    lines: list[str] = []
    for file in (path.with_name(f"{path.name}.1"), path):
        try:
            # A log is rotated after the entry that makes it too large.
            lines += _decode(
                read_start(file, SERVER_LOG.value + SERVER_LOG_LINE.value)
            ).splitlines()
        except OSError:
            # Nothing was logged yet, or the log was never rotated.
            continue
    return lines


def _show_new_log_lines(path: Path, session: str | None) -> None:
    """Show lines as they come, until a signal."""
    for line in _follow_log_lines(path):
        if session is None or session in line:
            click.echo(escape_controls(line))


def _follow_log_lines(path: Path) -> Iterator[str]:
    """Yield the lines that are added from now on, for ever."""
    offset, partial_line = path.stat().st_size if path.exists() else 0, b""
    while True:
        size = path.stat().st_size if path.exists() else 0
        # The log was rotated, and the file begins anew.
        if size < offset:
            offset, partial_line = 0, b""
        if size > offset:
            with path.open("rb") as file:
                file.seek(offset)
                added = file.read(size - offset)
            offset += len(added)
            *complete_lines, partial_line = (partial_line + added).split(b"\n")
            yield from map(_decode, complete_lines)
        time.sleep(FOLLOW_INTERVAL)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


debug.add_command(debug_permission)


@debug.command("config")
@click.option("--provenance", is_flag=True, help="Show the file and line that set each value.")
@CONFIG_OPTION
@click.option("--trust", "as_trusted", is_flag=True, help="Show it as if the project were trusted.")
def show_config(*, provenance: bool, config: Path | None, as_trusted: bool) -> None:
    """Print the effective configuration as JSON.
    Values with names like `key` or `token` are masked.

    What is configured and can never act is named on stderr.
    """
    from codeloop.app.doctor.effect_checks import examine_effects
    from codeloop.app.settings import Startup, find_settings
    from codeloop.client.slash.commands import SLASH_COMMANDS

    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    state = TrustState(is_trusted=True)
    if not as_trusted:
        state = find_trust_state(paths, project_root.root, project_root.directory)
    is_trusted = state.is_trusted
    # Agents and commands may be defined in Markdown files,
    # which count like keys of the configuration.
    pages = find_pages(project_root, find_homes(project_root, paths), trusted=is_trusted)
    extra = replace(pages, distrust=state.reason)
    configuration = load_config(
        project_root,
        paths,
        config_file=config,
        environment=os.environ,
        trusted=is_trusted,
        extra=extra,
    )
    for warning in configuration.warnings:
        click.echo(escape_controls(f"codeloop: {warning}"), err=True)
    if not as_trusted:
        for finding in examine_effects(
            find_settings(Startup(directory=Path.cwd(), config_file=config)),
            {each.name for each in SLASH_COMMANDS},
        ):
            if finding.state != "ok":
                click.echo(escape_controls(f"codeloop: {finding.text} {finding.fix}"), err=True)
    values = mask_secrets(list_effective_values(configuration.config))
    if not provenance:
        click.echo(_format_json(values))
        return
    leaves = list_leaves(values)
    rows = [
        (format_keys(keys), _format_value(value), _describe_origin(configuration, keys))
        for keys, value in leaves
    ]
    click.echo(escape_controls(align_columns([("settings", "value", "set by"), *rows])))


@debug.command("paths")
@JSON_OPTION
def show_paths(*, as_json: bool) -> None:
    """Print the folders and files that codeloop uses."""
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    # Scripts read these names, so they stay when a property is renamed.
    rows = {
        "data": str(paths.data),
        "config": str(paths.config),
        "cache": str(paths.cache),
        "state": str(paths.state),
        "home": str(paths.home),
        "reference": str(paths.opencode_config),
        "claude": str(paths.claude_home),
        "credentials": str(paths.credentials_file),
        "trust": str(paths.trust_file),
        "log": str(paths.log_folder),
        "root": str(project_root.root),
        "directory": project_root.directory_name,
        "project": str(paths.get_project_folder(project_root.project_id)),
    }
    if as_json:
        click.echo(_format_json(rows))
    else:
        click.echo(escape_controls(align_columns(list(rows.items()))))


@debug.command("limits")
@JSON_OPTION
def show_limits(*, as_json: bool) -> None:
    """Print every limit: deadlines, sizes and counts."""
    if as_json:
        click.echo(_format_json(list_limits()))
        return
    rows = [(limit.name, f"{limit.value:,} {limit.unit}", limit.why) for limit in list_limits()]
    click.echo(escape_controls(align_columns([("limit", "value", "effect"), *rows])))


@debug.command("snapshot")
@click.option("--prune", is_flag=True, help="Delete what no session needs any more.")
def show_snapshot(*, prune: bool) -> None:
    """Show what is stored for undo in this project, and what is left out."""

    async def print_snapshot_state(client: LocalClient) -> None:
        snapshots = client.project.snapshots
        await snapshots.take()
        removed_count = snapshots.prune() if prune else 0
        stats = snapshots.read_stats()
        rows = [
            ("folder", str(stats.folder)),
            ("files", f"{stats.files:,}"),
            ("objects", f"{stats.objects:,}"),
            ("size", f"{stats.bytes / 1024:,.0f} KB"),
            ("removed", f"{removed_count:,}"),
            *(("left out", f"{omission.path}: {omission.reason}") for omission in stats.omitted),
        ]
        if stats.disabled_reason:
            rows.append(("off", stats.disabled_reason))
        click.echo(escape_controls(align_columns([("what", "value"), *rows])))

    run_with_local_client(print_snapshot_state)


def list_effective_values(config: Config) -> dict[str, Any]:
    """Return a configuration, with defaults, as JSON values; unset values are left out."""
    values = {name: msgspec.to_builtins(getattr(config, name)) for name in config.__struct_fields__}
    return {
        name: value for name, value in values.items() if value is not None and value not in ([], {})
    }


def list_leaves(value: Any, keys: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values whose origin is known, each with its keys; `keys`: those of `value` itself.

    Lists to which several files add (rules, instructions, plugins) are yielded by item,
    other lists whole.
    """
    # An object with a `pattern` is a rule, which is set as a whole.
    if is_object(value) and value and "pattern" not in value:
        for key, inner in value.items():
            yield from list_leaves(inner, (*keys, key))
    elif is_list(value) and keys[-1] in {"permission", "restrictions", "instructions", "plugin"}:
        for index, inner in enumerate(value):
            yield (*keys, index), inner
    else:
        yield keys, value


def _format_json(value: Any) -> str:
    return escape_json_controls(msgspec.json.format(encode_json(value), indent=2).decode())


def _describe_origin(loaded: LoadedConfig, keys: KeyPath) -> str:
    origin = loaded.provenance.get(format_keys(keys))
    return f"{origin.layer.name} ({origin})" if origin else "built-in"


def _format_value(value: Any) -> str:
    if is_object(value) and set(value) == {"permission", "pattern", "action"}:
        return f"{value['permission']} {value['pattern']}: {value['action']}"
    text = encode_json(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
