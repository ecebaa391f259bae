"""`codeloop demo`: the real loop over a small project, with a recorded model."""

import sys
from pathlib import Path

import click

from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.run.message import Message
from codeloop.cli.run.one_shot import execute
from codeloop.cli.run.options import Options
from codeloop.cli.target.local import here

FILES = ("postage.py", "test_postage.py")
TASK = "A customer says that a parcel of exactly 500 g costs too much. Find out why and fix it."


@click.command()
@click.option("--keep", is_flag=True, help="Keep the folder and say where it is.")
def demo(*, keep: bool) -> None:
    """See the agent fix a real bug: real tools, real test run, real diff. Only the model is recorded."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="codeloop-demo-")).resolve()
    try:
        code = play(folder)
    finally:
        if not keep:
            shutil.rmtree(folder)
    if keep:
        click.echo(f"The project is in {folder / 'project'}", err=True)
    sys.exit(code)


def play(folder: Path) -> int:
    """Put the project into `folder` and run the recording over it; gives the exit code."""
    import asyncio
    import os
    import shutil
    from importlib.resources import as_file, files

    colour = has_colour(sys.stderr)
    project = folder / "project"
    pace = 1.0 if sys.stderr.isatty() else 0.0
    data = files("codeloop.cli.commands.data").joinpath("demo")
    with as_file(data) as source:
        shutil.copytree(source / "project", project)
        click.echo(paint("codeloop demo", "bold", colour=colour) + ": the model's answers are a recording.", err=True)
        click.echo("Everything else is real: the loop, the tools, the test run, the diff.\n", err=True)
        click.echo(paint(f"> {TASK}\n", "cyan", colour=colour), err=True)
        # The demo leaves no session behind, and finds the interpreter that runs it.
        os.environ["CODELOOP_HOME"] = str(folder / "home")
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        options = Options(message=(TASK,), directory=project, replay=source / "recording.jsonl", pace=pace)
        code = asyncio.run(execute(options, Message(TASK), here))
    click.echo(
        "\nNow with a real model, in a project of yours:\n"
        "  codeloop auth login anthropic      (or openai, openrouter, ...; or set ANTHROPIC_API_KEY)\n"
        '  codeloop run "find out why the tests fail and fix it"',
        err=True,
    )
    return code
