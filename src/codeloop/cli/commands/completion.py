"""`codeloop completion`: what a shell reads to complete our commands."""

import click

from codeloop.cli.completion.shells import script


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what SHELL reads to complete commands, options, sessions, agents, models and commands of the project.

    bash and zsh: eval "$(codeloop completion bash)" in ~/.bashrc or ~/.zshrc; fish: codeloop completion fish | source
    """
    click.echo(script(shell, ctx.find_root().command), nl=False)
