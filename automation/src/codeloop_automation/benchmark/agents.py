"""The agents that `codeloop bench` can run: the command line of each,
and the parser of its output.
"""

import os
import shlex
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec import Struct

from codeloop.kit.programs import find_program
from codeloop.schema.errors import UsageProblem
from codeloop_automation.command_lines import CODELOOP_COMMAND

RUN_COMMAND = (*CODELOOP_COMMAND, "run", "--output-format", "json", "--auto")
# Users check their tasks with these two: the first must fail every task, the second must pass it.
IDLE_AGENT, SOLUTION_AGENT = "nothing", "solution"


class ReportedUsage(Struct, frozen=True, kw_only=True):
    """The usage of one run as the agent reported it; None for a number that it does not report.
    `cost` in dollars.
    """

    cost: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    steps: int | None = None
    session_id: str = ""
    error: str = ""


class _TokenUsage(Struct, frozen=True):
    """The tokens in a result line. `input_tokens` does not include the two numbers of the cache."""

    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class _ResultLine(Struct, frozen=True):
    """The last output line of Claude Code and of codeloop, which write the same format."""

    usage: _TokenUsage = _TokenUsage()
    total_cost_usd: float | None = None
    num_turns: int | None = None
    session_id: str = ""
    errors: list[str] = []


class _OpenCodeCache(Struct, frozen=True):
    """The cached tokens of a step. OpenCode does not include them in `input`."""

    read: int = 0
    write: int = 0


class _OpenCodeTokens(Struct, frozen=True):
    """The tokens of a step."""

    input: int = 0
    output: int = 0
    cache: _OpenCodeCache = _OpenCodeCache()


class _OpenCodePart(Struct, frozen=True):
    """The usage of a step. `cost` in dollars."""

    cost: float = 0.0
    tokens: _OpenCodeTokens = _OpenCodeTokens()


class _OpenCodeLine(Struct, frozen=True, rename={"session_id": "sessionID"}):
    """An output line of OpenCode. Only lines of the type `step_finish` have a usage."""

    type: str = ""
    session_id: str = ""
    part: _OpenCodePart = _OpenCodePart()


def parse_result_line(output: str) -> ReportedUsage:
    """Parse the last output line of codeloop or Claude Code,
    which reports the usage of the whole run.
    """
    try:
        result = msgspec.json.decode(output.splitlines()[-1], type=_ResultLine)
    except (IndexError, msgspec.DecodeError):
        return ReportedUsage(error="It ended without a result.")
    usage = result.usage
    return ReportedUsage(
        cost=result.total_cost_usd,
        input_tokens=usage.input_tokens
        + usage.cache_creation_input_tokens
        + usage.cache_read_input_tokens,
        output_tokens=usage.output_tokens,
        steps=result.num_turns,
        session_id=result.session_id,
        error="; ".join(result.errors),
    )


def parse_opencode_output(output: str) -> ReportedUsage:
    """Parse the output of OpenCode, which reports the usage of each step, and return the sums."""
    steps: list[_OpenCodeLine] = []
    for text in output.splitlines():
        with suppress(msgspec.DecodeError):
            line = msgspec.json.decode(text, type=_OpenCodeLine)
            if line.type == "step_finish":
                steps.append(line)
    if not steps:
        return ReportedUsage(error="It ended without a step.")
    tokens = [step.part.tokens for step in steps]
    return ReportedUsage(
        cost=sum(step.part.cost for step in steps),
        input_tokens=sum(each.input + each.cache.read + each.cache.write for each in tokens),
        output_tokens=sum(each.output for each in tokens),
        steps=len(steps),
        session_id=steps[-1].session_id,
    )


def report_no_usage(_output: str) -> ReportedUsage:
    """Ignore the output of a program that reports no usage."""
    return ReportedUsage()


class BenchAgent(Struct, frozen=True):
    """An agent that a benchmark runs. `command` contains `{prompt}`,
    and `{flags}` where `model_flags` go.

    A user's command may contain `{model}` instead of flags; the two pseudo-agents have no command.
    `takes_bare_model`: the program takes the name of a model without its provider.
    `parse_usage`: parses its stdout.
    """

    name: str
    command: tuple[str, ...]
    model_flags: tuple[str, ...] = ("--model", "{model}")
    takes_bare_model: bool = False
    parse_usage: Callable[[str], ReportedUsage] = report_no_usage

    def make_command(self, prompt: str, model: str | None) -> list[str]:
        """Return the command line for a prompt. `model`: as `PROVIDER/MODEL`;
        None: the agent's default.
        """
        flags = self.model_flags if model else ()
        words = [
            word for part in self.command for word in (flags if part == "{flags}" else (part,))
        ]
        model_name = model or ""
        if self.takes_bare_model and "/" in model_name:
            model_name = model_name.partition("/")[2]
        # The prompt comes last, so that a `{model}` within it stays as it is.
        return [word.replace("{model}", model_name).replace("{prompt}", prompt) for word in words]


AGENTS = (
    # `find_agent` puts further flags into the first row's command.
    BenchAgent(
        "codeloop", (*RUN_COMMAND, "{flags}", "--", "{prompt}"), parse_usage=parse_result_line
    ),
    BenchAgent(
        "opencode",
        ("opencode", "run", "--format", "json", "{flags}", "{prompt}"),
        parse_usage=parse_opencode_output,
    ),
    BenchAgent(
        "claude",
        (
            "claude",
            "-p",
            "--output-format",
            "json",
            "--permission-mode",
            "bypassPermissions",
            "{flags}",
            "{prompt}",
        ),
        takes_bare_model=True,
        parse_usage=parse_result_line,
    ),
    # The usage of these two is not read.
    BenchAgent(
        "codex", ("codex", "exec", "--full-auto", "{flags}", "{prompt}"), takes_bare_model=True
    ),
    BenchAgent(
        "gemini", ("gemini", "--yolo", "{flags}", "--prompt", "{prompt}"), takes_bare_model=True
    ),
    BenchAgent(IDLE_AGENT, ()),
    BenchAgent(SOLUTION_AGENT, ()),
)
AGENT_NAMES = ", ".join(agent.name for agent in AGENTS)


def find_agent(choice: str, flags: tuple[str, ...] = ()) -> BenchAgent:
    """Return the agent for a value of `--agent`: a name, `codeloop:AGENT`, or `NAME=COMMAND`.

    `flags`: flags of `codeloop run`, for codeloop only.
    Raises UsageProblem if the agent is unknown or not installed.
    """
    if "=" in choice:
        name, _, command = choice.partition("=")
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise UsageProblem(
                f"{choice!r} is not an agent: its command can't be read ({error})."
            ) from error
        if not name or "{prompt}" not in command:
            raise UsageProblem(
                f"{choice!r} is not an agent: write NAME=COMMAND, with {{prompt}} in COMMAND."
            )
        return _check_installed(BenchAgent(name, words))
    name, _, codeloop_agent = choice.partition(":")
    agent = next((agent for agent in AGENTS if agent.name == name), None)
    if agent is None or (codeloop_agent and name != "codeloop"):
        raise UsageProblem(
            f"There is no agent {choice}: {AGENT_NAMES}, codeloop:AGENT or NAME=COMMAND."
        )
    if name == "codeloop":
        agent_flags = ("--agent", codeloop_agent) if codeloop_agent else ()
        command = (*RUN_COMMAND, *flags, *agent_flags, "{flags}", "--", "{prompt}")
        return msgspec.structs.replace(agent, name=choice, command=command)
    return _check_installed(agent)


def _check_installed(agent: BenchAgent) -> BenchAgent:
    """Return the agent itself. Raises UsageProblem if its program is not on the PATH."""
    if not agent.command:
        return agent
    program = agent.command[0]
    # A relative path is relative to the copy of a task's repository, which does not exist yet.
    if "/" not in program and find_program(program, os.environ.get("PATH")) is None:
        raise UsageProblem(
            f"{program} is not installed: it is not on the PATH. Install it, or leave it out."
        )
    return agent
