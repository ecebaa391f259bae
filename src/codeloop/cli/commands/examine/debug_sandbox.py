"""`codeloop debug sandbox`: what keeps commands in here, and the proof."""

import asyncio
import os
from pathlib import Path

import click
import msgspec

from codeloop.cli.options import CONFIG_OPTION, JSON_OPTION
from codeloop.cli.output.style import align_columns
from codeloop.config.load import load_config
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.config.trust.state import find_trust_state
from codeloop.kit.terminal_text import escape_controls
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.report import SandboxReport, make_report


@click.command("sandbox")
@CONFIG_OPTION
@JSON_OPTION
def debug_sandbox(*, config: Path | None, as_json: bool) -> None:
    """Show what commands may do here, and try whether that holds; exit code 1 when it does not."""
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    is_trusted = find_trust_state(paths, project_root.root, project_root.directory).trusted
    configuration = load_config(project_root, paths, config_file=config, environment=os.environ, trusted=is_trusted)
    scratch = paths.data / "tool-output"
    policy_input = PolicyInput(
        project_root.root, project_root.directory, scratch, dict(os.environ), paths.private_folders
    )
    report = asyncio.run(make_report(policy_input, configuration.config.sandbox))
    if as_json:
        click.echo(msgspec.json.encode({**msgspec.to_builtins(report), "holds": report.holds}))
    else:
        click.echo(escape_controls(_format_report(report)))
    if not report.holds:
        raise SystemExit(1)


UNTRIED_BACKEND_NOTE = "which the authors have not tried on a Mac: rely on what is tried below alone"


def _format_report(report: SandboxReport) -> str:
    rows = [("mode", report.mode), ("enforced by", report.backend or "nothing: no sandbox can be had here")]
    rows += [("", UNTRIED_BACKEND_NOTE)] if report.backend == "sandbox-exec" else []
    rows += [(f"not by {kind}", why) for kind, why in report.refused.items()]
    rows += [("network", report.network + (" (the registries and yours)" if report.network == "hosts" else ""))]
    for name in ("writable", "layered", "replaced", "protected", "hidden"):
        paths: list[str] = getattr(report, name)
        rows += [(name if not at else "", path) for at, path in enumerate(paths)]
    lines = [align_columns(rows), "", "tried, each by a program in the sandbox:"]
    lines += [f"  {'ok' if attempt.ok else 'FAILED':<7} {attempt.what}" for attempt in report.attempts]
    return "\n".join(lines if report.attempts else lines[:1])
