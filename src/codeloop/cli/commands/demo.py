"""`codeloop demo`: fixes a bug in a small project with the real loop and tools,
and recorded answers of a model.
"""

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import click

from codeloop.cli.chat.start import can_show_terminal_ui
from codeloop.cli.option_values import Options
from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.run.message import RunMessage
from codeloop.cli.run.one_shot import run_one_shot
from codeloop.cli.target.local import open_local
from codeloop.kit.remove_tree import remove_tree
from codeloop.schema.errors import UsageProblem

# Where there is no sandbox, the test run of the recording would have to be allowed by the user.
# Language servers are off: one that happens to be on the PATH would start for a single edit, and
# take longer than all the rest.
DEMO_CONFIG = '{"permission": {"bash": {"python3 -m unittest *": "allow"}}, "lsp": false}'
DEMO_TASK = (
    "A customer says that a parcel of exactly 500 g costs too much. Find out why and fix it."
)


@click.command()
@click.option("--keep", is_flag=True, help="Keep the folder and print its path.")
@click.option("--tui", "in_ui", is_flag=True, help="Show it in the terminal UI.")
def demo(*, keep: bool, in_ui: bool) -> None:
    """Watch the agent fix a real bug with real tools. Only the model is recorded."""
    if in_ui and not can_show_terminal_ui(Options(message=())):
        raise UsageProblem("The terminal UI needs a terminal. Without one: codeloop demo")
    folder = Path(tempfile.mkdtemp(prefix="codeloop-demo-")).resolve()
    try:
        code = play_demo(folder, in_ui=in_ui)
    finally:
        if not keep:
            remove_tree(folder)
    if keep:
        click.echo(f"The project is in {folder / 'project'}", err=True)
    sys.exit(code)


def play_demo(folder: Path, *, in_ui: bool = False) -> int:
    """Put the project into `folder`, replay the recording on it, and return the exit code."""
    colour = has_colour(sys.stderr)
    project = folder / "project"
    program = spell_program()
    # Somebody who watches sees the answers at the speed of a model; otherwise they come at once.
    pace = 1.0 if sys.stderr.isatty() else 0.0
    # The package may be installed as an archive; then `as_file` unpacks the folder.
    data = files("codeloop.cli.commands.data").joinpath("demo")
    with as_file(data) as source:
        shutil.copytree(source / "project", project)
        if not in_ui:
            _introduce(colour=colour)
        # The demo leaves no session behind.
        os.environ["CODELOOP_HOME"] = str(folder / "home")
        os.environ["CODELOOP_CONFIG_CONTENT"] = DEMO_CONFIG
        # The recording runs `python3`, which has to be the interpreter of this process.
        os.environ["PATH"] = (
            f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        )
        options = Options(
            message=(DEMO_TASK,), directory=project, replay=source / "recording.jsonl", pace=pace
        )
        if in_ui:
            from codeloop.cli.terminal_ui import show_terminal_ui

            code: int = show_terminal_ui(options)
        else:
            code = asyncio.run(run_one_shot(options, RunMessage(DEMO_TASK), open_local))
    click.echo(
        "\nNow with a real model. Its key, once (or openai, openrouter, ...; or set ANTHROPIC_API_KEY):\n"
        f"  {program} auth login anthropic\n"
        "In your own project:\n"
        f'  {program} run "find out why the tests fail and fix it"',
        err=True,
    )
    return code


def spell_program() -> str:
    """Return what a shell takes to start this program in any folder: `codeloop`
    where the PATH leads to it.
    """
    script = Path(sys.argv[0]).absolute()
    if script.name != "codeloop":
        return shlex.join((sys.executable, "-m", "codeloop"))
    found = shutil.which("codeloop")
    is_on_path = found is not None and Path(found).resolve() == script.resolve()
    return "codeloop" if is_on_path else shlex.quote(str(script))


def _introduce(*, colour: bool) -> None:
    click.echo(
        paint("codeloop demo", "bold", colour=colour) + ": the model's answers are a recording.",
        err=True,
    )
    click.echo("Everything else is real: the loop, the tools, the test run, the diff.\n", err=True)
    click.echo(paint(f"> {DEMO_TASK}\n", "cyan", colour=colour), err=True)
