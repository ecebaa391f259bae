"""What is told about a command line that could not be read: one line, and where its help is."""

import click

from codeloop.kit.suggest import meant, near
from codeloop.kit.terminal_text import inert


def problem_of(error: click.ClickException) -> str:
    """Return what was wrong, in a line, with the command whose help says how it is called."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    text = error.format_message()
    if isinstance(error, click.NoSuchOption) and context is not None:
        known = [name for param in context.command.get_params(context) for name in param.opts + param.secondary_opts]
        close = near(error.option_name.lstrip("-"), (name.lstrip("-") for name in known if name.startswith("--")))
        text = f"There is no option {error.option_name}.{meant(f'--{name}' for name in close)}"
    stop = "" if text.endswith((".", "?", "!")) else "."
    where = f" See: {context.command_path.strip()} --help" if context is not None else ""
    return f"{inert(text)}{stop}{where}"
