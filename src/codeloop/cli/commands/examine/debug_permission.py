"""`codeloop debug permission`: explains the decision about a command, a file or an address,
without running it.
"""

import click

from codeloop.app.explain_permission import ExplainedNeed, Explanation, Situation, explain_call
from codeloop.cli.options import AGENT_OPTION, JSON_OPTION, PROFILE_OPTION, SESSION_OPTION
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.project import run_with_local_client
from codeloop.cli.target.selection import check_agent, find_session
from codeloop.client.local import LocalClient
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem
from codeloop.schema.permission import parse_profile
from codeloop.tool.builtin.shell.sandbox_preview import SandboxPreview

# Characters of patterns or a path on a line.
LINE_CHARS = 200
NO_RULE_TEXT = "no rule that could deny it"
NETWORK_TEXTS = {
    "off": "only servers of other sandboxed commands of this project",
    "hosts": "package registries, git hosting and the hosts of the configuration",
    "on": "that of this machine",
}
_ACCESSIBILITY_TEXTS = {
    "free": "open",
    "opened": "opened for this command once it is allowed",
    "blocked": "blocked",
}
# Who enforces what a rule denies: for the permissions `edit` and `read` in the project,
# and for all else.
ENFORCED_BY_SANDBOX = {
    "edit": "our tools; in the sandbox also the kernel, for every program (`codeloop debug sandbox`); with Landlock "
    "alone a change is put back after the command",
    "read": "our tools; in the sandbox, unless it is Landlock alone, also the kernel, for every program "
    "(`codeloop debug sandbox`)",
}
ENFORCED_BY_TOOLS = "our tools only: another program can still do this"
# Needs, and writable folders, that the short form shows.
MAX_SHOWN_ROWS = 3
# An explanation of so many lines or more is shown in the short form, unless --verbose is given.
MIN_SHORTENED_LINES = 16
# In the order of precedence: the strictest action decides.
VERDICT_TEXTS = {
    "deny": "It would be denied",
    "ask": "You would be asked",
    "allow": "It would run without a question",
}


@click.command("permission")
@click.argument("command", required=False)
@click.option("--read", metavar="PATH", help="Instead of COMMAND: a file to read.")
@click.option("--edit", metavar="PATH", help="Instead of COMMAND: a file to write.")
@click.option("--url", metavar="URL", help="Instead of COMMAND: a page to fetch.")
@click.option(
    "--workdir",
    metavar="DIRECTORY",
    help="Where COMMAND would run. [default: the current directory]",
)
@AGENT_OPTION
@SESSION_OPTION
@PROFILE_OPTION
@click.option(
    "-v", "--verbose", is_flag=True, help="Show everything that the command needs and touches."
)
@JSON_OPTION
def debug_permission(
    command: str | None, *, as_json: bool, verbose: bool, **flags: str | None
) -> None:
    """Show what would be decided about COMMAND, by which rule, and where that is written.
    Nothing is run or asked.
    """
    tool, arguments = _make_call(command, flags)
    agent, session = flags["agent"], flags["session"]
    profile = parse_profile(flags["profile"])

    async def print_explanation(client: LocalClient) -> None:
        await check_agent(client, agent)
        stored_session = await find_session(client, session) if session is not None else None
        default_agent = client.project.settings.config.default_agent or "build"
        name = agent or (
            stored_session.agent if stored_session and stored_session.agent else default_agent
        )
        situation = Situation(name, stored_session.id if stored_session else None, profile)
        explanation = await explain_call(client.project, situation, tool, arguments)
        if as_json:
            print_json(explanation)
        else:
            click.echo(
                escape_controls("\n".join(_format_explanation(explanation, verbose=verbose)))
            )

    run_with_local_client(print_explanation)


def _make_call(command: str | None, flags: dict[str, str | None]) -> tuple[str, dict[str, str]]:
    """Return the tool and the arguments of the call to explain.
    Raises UsageProblem unless there is exactly one.
    """
    # The smallest patch that touches the file; only its path counts.
    patch = f"*** Begin Patch\n*** Add File: {flags['edit']}\n+x\n*** End Patch"
    workdir = {"workdir": flags["workdir"]} if flags["workdir"] else {}
    calls = (
        ("bash", command, {"command": command or "", **workdir}),
        ("read", flags["read"], {"filePath": flags["read"] or ""}),
        ("apply_patch", flags["edit"], {"patchText": patch}),
        ("webfetch", flags["url"], {"url": flags["url"] or ""}),
    )
    given_calls = [(tool, arguments) for tool, value, arguments in calls if value is not None]
    if len(given_calls) != 1:
        raise UsageProblem("Give one COMMAND, or one of --read, --edit and --url.")
    return given_calls[0]


def _format_explanation(explanation: Explanation, *, verbose: bool) -> list[str]:
    needs = [line for need in explanation.needs for line in _format_need(need)]
    sandbox = _format_sandbox(explanation.sandbox) if explanation.sandbox is not None else []
    head = [f"profile {explanation.profile}, agent {explanation.agent}"]
    failure = [f"The tool refuses it: {explanation.failure}"] if explanation.failure else []
    if verbose or len(needs) + len(sandbox) < MIN_SHORTENED_LINES:
        return [*head, *needs, *sandbox, *failure]
    actions = {need.action for need in explanation.needs}
    action = next((name for name in VERDICT_TEXTS if name in actions), "allow")
    deciding = [need for need in explanation.needs if need.action == action]
    rules = [line for need in deciding[:MAX_SHOWN_ROWS] for line in _format_need(need)]
    lines = [*head, f"{VERDICT_TEXTS[action]}:", *rules, *sandbox[:1], *failure]
    return [*lines, f"{len(needs) - len(rules) + len(sandbox[1:])} more lines: --verbose"]


def _format_need(need: ExplainedNeed) -> list[str]:
    """Return lines about one of the permissions that a call needs: what is decided, by which rule,
    and why.
    """
    if need.rule is not None:
        rule = f"{need.rule.permission} {need.rule.pattern}: {need.rule.action}, {need.origin}"
    else:
        rule = "no rule, so it is asked about" if need.action == "ask" else NO_RULE_TEXT
    subject = one_line(", ".join(need.patterns), LINE_CHARS) or "what is only known when it runs"
    lines = [f"{need.action:5}  {need.permission}  {subject}", f"    by {rule}"]
    if need.action == "deny":
        # The sandbox is told the paths of the project that rules deny, not those outside.
        # Of paths that are only known when the command runs there are no patterns.
        is_project_path = bool(need.patterns) and not need.patterns[0].startswith(("/", "~", "../"))
        enforcers = (
            ENFORCED_BY_SANDBOX.get(need.permission, ENFORCED_BY_TOOLS)
            if is_project_path
            else ENFORCED_BY_TOOLS
        )
        lines.append(f"    enforced by {enforcers}")
    if need.traits:
        lines.append(f"    it is {', '.join(need.traits)}")
    if need.remote:
        lines.append(
            f"    acts on another machine or service: {one_line(', '.join(need.remote), LINE_CHARS)}"
        )
    if need.unproven:
        lines.append(f"    meaning not certain: {need.unproven}")
    if need.possible:
        lines.append("    a part of it is only known when it runs")
    if need.action == "ask":
        grants = ", ".join(f"{need.permission} {pattern}" for pattern in need.always)
        lines.append(f"    always: {one_line(grants, LINE_CHARS) or 'not offered'}")
    return lines


def _format_sandbox(preview: SandboxPreview) -> list[str]:
    if not preview.backend:
        return [f"no sandbox: {preview.reason}"]
    writable = ", ".join(preview.writable[:MAX_SHOWN_ROWS])
    if len(preview.writable) > MAX_SHOWN_ROWS:
        writable += f" and {len(preview.writable) - MAX_SHOWN_ROWS} more"
    lines = [f"sandbox  {preview.backend}" + (f": {preview.reason}" if preview.reason else "")]
    lines.append(f"    network: {NETWORK_TEXTS[preview.network]}")
    lines.append(f"    writable: a private /tmp, {writable} (`codeloop debug sandbox` lists them)")
    for touch in preview.touches:
        reason = f"{touch.why}, " if touch.why else ""
        accessibility = _ACCESSIBILITY_TEXTS[touch.accessibility]
        lines.append(
            f"    {touch.access} of {one_line(touch.path, LINE_CHARS)}: {reason}{accessibility}"
        )
    return lines
