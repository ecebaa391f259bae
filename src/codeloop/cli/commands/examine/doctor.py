"""`codeloop doctor`: whether everything works here, and how to fix what does not."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from codeloop.app.doctor.doctor import run_checks
from codeloop.app.doctor.finding import Finding
from codeloop.app.settings import Startup
from codeloop.cli.options import CONFIG_OPTION, JSON_OPTION
from codeloop.cli.output.style import has_colour, paint, print_json
from codeloop.client.formatting import Look
from codeloop.kit.terminal_text import escape_controls, one_line

STATE_MARKS: dict[str, tuple[str, Look]] = {
    "ok": ("ok", "green"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "red"),
}
_LINE_CHARS = 2_000
"""Characters of a line: what a file says of itself may be long."""


@click.command()
@click.option("--online", is_flag=True, help="Ask the model for one word, and start the MCP servers.")
@CONFIG_OPTION
@JSON_OPTION
def doctor(*, online: bool, config: Path | None, as_json: bool) -> None:
    """Check this machine, the configuration, the model and the servers; exit code 1 when there is a problem.

    Nothing is sent and nothing is started, except with --online.
    """
    size = os.get_terminal_size() if sys.stdout.isatty() else os.terminal_size((0, 0))
    startup = Startup(directory=Path.cwd(), config_file=config)
    findings = asyncio.run(run_checks(startup, size.columns, size.lines, is_online=online))
    if as_json:
        print_json(findings)
    else:
        click.echo("\n".join(_format_findings(findings, colour=has_colour(sys.stdout))))
    sys.exit(any(each.state == "problem" for each in findings))


def _format_findings(findings: Sequence[Finding], *, colour: bool) -> list[str]:
    """Return the page: groups with a line each, how to fix what is wrong below it, and the sum."""
    wide, lines, group = max(len(escape_controls(each.name)) for each in findings), list[str](), ""
    for each in findings:
        if each.group != group:
            group = each.group
            lines.append(("\n" if lines else "") + paint(group, "bold", colour=colour))
        word, look = STATE_MARKS[each.state]
        mark = paint(f"{word:8}", look, colour=colour)
        lines.append(f"  {mark}{escape_controls(each.name).ljust(wide)}  {one_line(each.text, _LINE_CHARS)}")
        if each.fix:
            lines.append(f"  {'':8}{'':{wide}}  {one_line(each.fix, _LINE_CHARS)}")
    states = [each.state for each in findings]
    problems, warnings = states.count("problem"), states.count("warning")
    if not problems + warnings:
        return [*lines, "", "Everything works."]
    return [*lines, "", f"{_format_count(problems, 'problem')}, {_format_count(warnings, 'warning')}"]


def _format_count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
