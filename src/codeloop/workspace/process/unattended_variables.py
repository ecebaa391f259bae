"""Makes the environment of a session's commands: nobody can type there,
so no program is to wait for an editor.
"""

from collections.abc import Mapping

from codeloop.kit.git import make_git_settings
from codeloop.workspace.process.shell_state import drop_bash_variables

NO_EDITOR = "false"
"""The program that stands for an editor: what starts it says that no text was written, and ends."""
_UNATTENDED_VARIABLES = {
    "EDITOR": NO_EDITOR,
    "VISUAL": NO_EDITOR,
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
# A user's own settings that would be taken before these;
# GPG_TTY leads a question for a passphrase to our screen.
_PERSONAL_VARIABLES = frozenset(
    (
        *(
            "GIT_EDITOR",
            "GIT_SEQUENCE_EDITOR",
            "HGEDITOR",
            "SVN_EDITOR",
            "JJ_EDITOR",
            "SUDO_EDITOR",
            "SYSTEMD_EDITOR",
        ),
        *("KUBE_EDITOR", "GH_EDITOR", "GLAB_EDITOR", "PSQL_EDITOR", "FCEDIT", "GPG_TTY"),
    )
)
# As variables they would be stronger than `git -c core.editor=...`, so they are settings.
_GIT_SETTINGS = {"core.editor": NO_EDITOR, "sequence.editor": NO_EDITOR}


def make_command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a session's first command: without those that steer bash,
    and with no editor or pager.

    A command may set another one, for itself or by `export`.
    """
    variables = {
        name: value
        for name, value in drop_bash_variables(environment).items()
        if name not in _PERSONAL_VARIABLES
    }
    return {**variables, **_UNATTENDED_VARIABLES, **make_git_settings(_GIT_SETTINGS, variables)}
