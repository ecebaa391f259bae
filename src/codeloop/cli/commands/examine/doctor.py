"""`codeloop doctor`: checks whether everything works here, and shows how to fix what does not."""

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
from codeloop.cli.output.print_json import print_json
from codeloop.cli.output.style import has_colour, paint
from codeloop.client.formatting import TextStyle
from codeloop.client.slash.commands import SLASH_COMMANDS
from codeloop.kit.text.terminal_text import escape_controls, one_line

STATE_MARKS: dict[str, tuple[str, TextStyle]] = {
    "ok": ("ok", "green"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "red"),
}
# Characters of a line: findings quote files and servers, whose texts may be long.
_LINE_CHARS = 2_000


@click.command()
@click.option(
    "--online", is_flag=True, help="Ask the model for one word, and start the MCP servers."
)
@CONFIG_OPTION
@JSON_OPTION
def doctor(*, online: bool, config: Path | None, as_json: bool) -> None:
    """Check this machine, the configuration, the model and the servers;
    exit code 1 when there is a problem.

    No model is asked and no server is started, except with --online.
    """
    # No columns: there is no terminal.
    size = os.get_terminal_size() if sys.stdout.isatty() else os.terminal_size((0, 0))
    startup = Startup(directory=Path.cwd(), config_file=config)
    commands = {each.name for each in SLASH_COMMANDS}
    checks = run_checks(startup, size.columns, size.lines, is_online=online, commands=commands)
    findings = asyncio.run(checks)
    if as_json:
        print_json(findings)
    else:
        click.echo("\n".join(_format_findings(findings, colour=has_colour(sys.stdout))))
    sys.exit(any(finding.state == "problem" for finding in findings))


def _format_findings(findings: Sequence[Finding], *, colour: bool) -> list[str]:
    """Return the lines of the report: the findings by group, each with its fix below it,
    and their numbers.
    """
    name_width = max(len(escape_controls(finding.name)) for finding in findings)
    lines, group = list[str](), ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            lines.append(("\n" if lines else "") + paint(group, "bold", colour=colour))
        word, style = STATE_MARKS[finding.state]
        mark = paint(f"{word:8}", style, colour=colour)
        name = escape_controls(finding.name).ljust(name_width)
        lines.append(f"  {mark}{name}  {one_line(finding.text, _LINE_CHARS)}")
        if finding.fix:
            # Below the text, which begins after the mark and the name.
            lines.append(f"  {'':8}{'':{name_width}}  {one_line(finding.fix, _LINE_CHARS)}")
    states = [finding.state for finding in findings]
    problems, warnings = states.count("problem"), states.count("warning")
    if not problems + warnings:
        return [*lines, "", "Everything works."]
    return [
        *lines,
        "",
        f"{_format_count(problems, 'problem')}, {_format_count(warnings, 'warning')}",
    ]


def _format_count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
