"""`codeloop completion`: prints the scripts for completion in bash, zsh and fish.

The values that they offer are found by `cli/completion_values.py`.
"""

import os
import re

import click
from click import Command
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

# Set by a shell that asks for completions; click reads it.
COMPLETION_VARIABLE = "_CODELOOP_COMPLETE"

# click's own script passes bash's words, which end at colons. This one passes the whole line, and
# cuts from each completion what bash has before the last colon already.
_BASH_SCRIPT = """\
_codeloop_completion() {
    local IFS=$'\\n' kind value index typed="${COMP_LINE:0:COMP_POINT}"
    typed="${typed##*[[:space:]]}"
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case "$kind" in
            dir) compopt -o dirnames 2> /dev/null ;;
            file) compopt -o default 2> /dev/null ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" _CODELOOP_COMPLETE=bash_complete "$1" 2> /dev/null)
    if [[ "$typed" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        for index in "${!COMPREPLY[@]}"; do COMPREPLY[index]="${COMPREPLY[index]#"${typed%:*}:"}"; done
    fi
}
complete -o nosort -F _codeloop_completion codeloop 2> /dev/null || complete -F _codeloop_completion codeloop
"""


class BashCompletion(BashComplete):
    """Completion for bash that splits the line itself: bash splits words at colons,
    which names of models contain.
    """

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is being typed, and that one."""
        line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        return words[1:], incomplete


def make_script(shell: str, command: Command) -> str:
    """Return the script that completes `codeloop` in a shell."""
    if shell == "bash":
        return _BASH_SCRIPT
    completion: ShellComplete = (ZshComplete if shell == "zsh" else FishComplete)(
        command, {}, "codeloop", COMPLETION_VARIABLE
    )
    # Errors of the program would be printed into the line that the user is typing.
    variable = f"{COMPLETION_VARIABLE}={shell}_complete"
    text = re.sub(
        rf"({variable}.*?codeloop)(?=\)[;}}])",
        r"\1 2>/dev/null",
        completion.source(),
        flags=re.DOTALL,
    )
    # Only the first comma of a completion separates kind and value; its help text may hold others.
    text = text.replace('string split ","', 'string split -m 1 ","')
    return text if text.endswith("\n") else text + "\n"


def register_bash() -> None:
    """Register `BashCompletion` with click, in the place of its own class for bash."""
    add_completion_class(BashCompletion)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, sessions, agents and models in SHELL.

    bash and zsh: eval "$(codeloop completion bash)" in ~/.bashrc or ~/.zshrc;
    fish: codeloop completion fish | source
    """
    click.echo(make_script(shell, ctx.find_root().command), nl=False)
