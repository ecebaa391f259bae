"""`codeloop attach`: a conversation with a running server."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from codeloop.cli.chat.conversing import converse
from codeloop.cli.group import completed
from codeloop.cli.run.options import Options
from codeloop.cli.target.remote import there


@click.command()
@click.argument("url")
@click.option(
    "--dir", "directory", type=click.Path(path_type=Path, readable=False), help="Work in this directory of the server."
)
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the directory's last session.")
@click.option("-s", "--session", metavar="ID", shell_complete=completed("session"), help="Go on with a session.")
@click.option("--fork", is_flag=True, help="Go on with a copy of the session; it stays as it is.")
@click.option("-u", "--username", metavar="NAME", help="The user name; else as the server says.")
@click.option("-p", "--password", help="The password; else that of your own server, or the environment.")
@click.option("--agent", metavar="NAME", shell_complete=completed("agent"), help="The agent to use.")
@click.option("-m", "--model", metavar="PROVIDER/MODEL", shell_complete=completed("model"), help="The model to use.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
def attach(url: str, **flags: Any) -> None:
    """Work on the server at URL, line by line: what is typed is a prompt, /help lists what else there is.

    Without a terminal each line of stdin is a prompt, answered before the next one is sent.
    """
    options = Options(message=(), attach=url, **flags)
    sys.exit(asyncio.run(converse(options, there)))
