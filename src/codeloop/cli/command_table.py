"""The commands of `codeloop`, each with its module and help text, and their usage errors.

A command's module is imported when the command is called, so that starting and `--help` stay quick.
"""

import sys
from typing import Any

import click

from codeloop import __version__
from codeloop.cli.bootstrap import INTERRUPTED_EXIT_CODE
from codeloop.cli.group import LazyCommand, LazyGroup, describe_usage_error
from codeloop.cli.options import (
    AGENT_OPTION,
    AUTO_OPTION,
    BASE_OPTION,
    CONFIG_OPTION,
    CONTINUE_OPTION,
    DIR_OPTION,
    FORK_OPTION,
    LOG_LEVEL_OPTION,
    MODEL_OPTION,
    OFFLINE_OPTION,
    PLAIN_OPTION,
    PRINT_LOGS_OPTION,
    PROFILE_OPTION,
    PROMPT_OPTION,
    SESSION_OPTION,
    THINKING_OPTION,
    TRUST_OPTION,
    VARIANT_OPTION,
    WORKTREE_OPTION,
)
from codeloop.kit.text.terminal_text import escape_controls

# The commands by name, each with the place of its code and its help text.
# Without a place: of `codeloop-automation`, in the folder `automation` of the repository.
COMMANDS = {
    "run": LazyCommand("commands.run:run", "Run one task and exit."),
    "demo": LazyCommand(
        "commands.demo:demo", "Watch a recorded model fix a real bug with the real tools."
    ),
    "serve": LazyCommand("commands.serve:serve", "Serve the agent to other programs over HTTP."),
    "web": LazyCommand("commands.serve:web", "Show your sessions in the browser."),
    "acp": LazyCommand("commands.acp:acp", "Serve an editor over the Agent Client Protocol."),
    "ci": LazyCommand(
        "",
        "Work on issues and pull requests in jobs of GitHub, GitLab or any host.",
    ),
    "attach": LazyCommand("commands.attach:attach", "Start a conversation on a running server."),
    "fleet": LazyCommand(
        "",
        "Run a table of jobs, each exactly once and in its own clone.",
    ),
    "schedule": LazyCommand(
        "",
        "Run prompts at set times, by the system's own timers.",
    ),
    "bench": LazyCommand(
        "",
        "Do tasks of your own with several agents and models, and compare.",
    ),
    "models": LazyCommand("commands.models:models", "List models with their limits and prices."),
    "auth": LazyCommand("commands.access.auth:auth", "Store, list and remove API keys."),
    "session": LazyCommand(
        "commands.sessions.session:session",
        "List, show, search, fork, archive and delete sessions.",
    ),
    "compare": LazyCommand(
        "commands.sessions.compare:compare", "Give the same prompt to several models, and compare."
    ),
    "status": LazyCommand(
        "commands.sessions.status:status",
        "Show what runs, waits for you or has ended, in every project.",
    ),
    "stop": LazyCommand(
        "commands.sessions.stop:stop", "Stop everything that is worked on, in every project."
    ),
    "worktree": LazyCommand(
        "commands.sessions.worktree:worktree", "List, compare, merge and remove work trees."
    ),
    "stats": LazyCommand(
        "commands.sessions.stats:stats", "Show cost and tokens by day, model and project."
    ),
    "agent": LazyCommand("commands.extend.agents_commands_skills:agent", "List and create agents."),
    "command": LazyCommand(
        "commands.extend.agents_commands_skills:command",
        "List commands: prompts that you run by name.",
    ),
    "skill": LazyCommand(
        "commands.extend.agents_commands_skills:skill",
        "List skills: instructions that the model loads when needed.",
    ),
    "mcp": LazyCommand("commands.extend.mcp:mcp", "Add, list, try and remove MCP servers."),
    "plugin": LazyCommand(
        "commands.extend.plugin:plugin", "Install, list, try, remove and write plugins."
    ),
    "lsp": LazyCommand("commands.extend.lsp:lsp", "List, install and restart language servers."),
    "formatter": LazyCommand(
        "commands.extend.tool_allow:formatter", "Let formatters do more than their sandbox does."
    ),
    "undo": LazyCommand(
        "commands.sessions.undo:undo", "Undo the last turn, including its file changes."
    ),
    "redo": LazyCommand("commands.sessions.undo:redo", "Redo what was undone."),
    "export": LazyCommand(
        "commands.sessions.export:export", "Write a session as JSON, HTML, Markdown or ATIF."
    ),
    "share": LazyCommand(
        "commands.sessions.export:share",
        "Write a session as one page to give to others, without secrets.",
    ),
    "import": LazyCommand("commands.sessions.export:import_", "Import a session from JSON."),
    "trust": LazyCommand("commands.access.trust:trust", "Trust this directory's configuration."),
    "permission": LazyCommand(
        "commands.access.permission:permission",
        "List and revoke what you always allow, and show what was decided.",
    ),
    "completion": LazyCommand(
        "commands.completion:completion", "Print the completion script for bash, zsh or fish."
    ),
    "doctor": LazyCommand(
        "commands.examine.doctor:doctor",
        "Check whether everything works here, and how to fix what does not.",
    ),
    "gc": LazyCommand(
        "commands.examine.gc:gc", "Remove what nothing has used for long from codeloop's folders."
    ),
    "debug": LazyCommand(
        "commands.examine.debug:debug",
        "Show configuration, paths, limits, the log and the sandbox.",
    ),
}


class RootGroup(LazyGroup):
    """The top-level group: its commands, or a conversation for any other words.
    Ctrl-C ends it silently with 130.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of a conversation, unless a command is called."""
        if args[:1] and args[0] in COMMANDS:
            return super().parse_args(ctx, args)
        # A group stops at the first word, to leave the rest to the command;
        # a conversation takes options after words.
        ctx.allow_interspersed_args = True
        # click removes `--` from the arguments while it parses them.
        ctx.meta[IS_PROMPT_KEY] = "--" in args
        # The group's own method would take the first word for the name of a command.
        return click.Command.parse_args(self, ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was called. Raises UsageProblem: it is not installed."""
        if args[0] in COMMANDS and self.get_command(ctx, args[0]) is None:
            from codeloop.cli.missing_commands import explain_missing_command

            raise explain_missing_command(args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED_EXIT_CODE)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both forms of the call."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] [DIRECTORY] [PROMPT]...")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")


# Key in click's `Context.meta`: whether `--` stood before the words, which then are a prompt,
# never a command.
IS_PROMPT_KEY = "codeloop.is_prompt"


@click.group(
    cls=RootGroup,
    lazy_commands=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@MODEL_OPTION
@VARIANT_OPTION
@AGENT_OPTION
@CONTINUE_OPTION
@SESSION_OPTION
@FORK_OPTION
@WORKTREE_OPTION
@BASE_OPTION
@PROMPT_OPTION
@AUTO_OPTION
@PROFILE_OPTION
@TRUST_OPTION
@THINKING_OPTION
@PLAIN_OPTION
@OFFLINE_OPTION
@DIR_OPTION
@CONFIG_OPTION
@LOG_LEVEL_OPTION
@PRINT_LOGS_OPTION
@click.version_option(__version__, message="%(version)s")
@click.pass_context
def app(ctx: click.Context, **flags: Any) -> None:
    """Work with codeloop, an open coding agent.

    Without a command, codeloop starts a conversation in DIRECTORY (default: the current one) with
    PROMPT as the first prompt: codeloop "fix the failing test". Without a terminal, PROMPT or stdin
    is run once, as by `codeloop run`.
    """
    if ctx.invoked_subcommand is None:
        from codeloop.cli.chat.start import start_conversation

        sys.exit(start_conversation(ctx, flags, is_prompt=ctx.meta.get(IS_PROMPT_KEY, False)))


def call_command() -> int:
    """Call the command that the arguments name, and return its exit code.
    Usage errors are one line, as are errors of ours, which the caller prints.
    """
    try:
        # Outside of standalone mode click raises its errors, instead of printing them and exiting.
        result = app.main(prog_name="codeloop", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(escape_controls(error.format_message()), err=True)
        return error.exit_code
    except click.ClickException as error:
        click.echo(escape_controls(f"codeloop: {describe_usage_error(error)}"), err=True)
        return error.exit_code
    except click.Abort:
        click.echo("codeloop: Interrupted.", err=True)
        return INTERRUPTED_EXIT_CODE
    return result if isinstance(result, int) else 0
