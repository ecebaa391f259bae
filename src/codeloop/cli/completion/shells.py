"""What bash, zsh and fish read to complete `codeloop`."""

import os
import re

from click import Command
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

VARIABLE = "_CODELOOP_COMPLETE"
"""Set by a shell that asks what may follow; click reads it."""

_BASH = """\
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


class Bash(BashComplete):
    """Reads the line itself: bash cuts words at colons, which names of models hold."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is typed, and that one."""
        line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = split_arg_string(line)
        typed = words.pop() if words and not line[-1].isspace() else ""
        return words[1:], typed


def script(shell: str, command: Command) -> str:
    """Return what a shell reads to complete `codeloop`; what goes wrong there is never shown at its prompt."""
    if shell == "bash":
        return _BASH
    made: ShellComplete = (ZshComplete if shell == "zsh" else FishComplete)(command, {}, "codeloop", VARIABLE)
    called = f"{VARIABLE}={shell}_complete"
    text = re.sub(rf"({called}.*?codeloop)(?=\)[;}}])", r"\1 2>/dev/null", made.source(), flags=re.DOTALL)
    text = text.replace('string split ","', 'string split -m 1 ","')  # fish: a help text may hold commas
    return text if text.endswith("\n") else text + "\n"


def register() -> None:
    """Have click answer bash as our script for it asks."""
    add_completion_class(Bash)
