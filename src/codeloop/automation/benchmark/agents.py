"""The agents of a benchmark: a row for each, with its command line and the parser of its output."""

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec import Struct

from codeloop.kit.processes import find_program
from codeloop.schema.errors import UsageProblem

CODELOOP = (sys.executable, "-P", "-m", "codeloop", "run", "--output-format", "json", "--auto")
NOTHING, SOLUTION = "nothing", "solution"
"""Pseudo-agents that check the tasks: one does nothing, the other runs a task's `solution`."""


class ReportedUsage(Struct, frozen=True, kw_only=True):
    """The usage that an agent reported of a run. `cost` in dollars. None: the agent does not report it."""

    cost: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    steps: int | None = None
    session_id: str = ""
    error: str = ""


class _Usage(Struct, frozen=True):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class _Result(Struct, frozen=True):
    """The last output line of Claude Code and of codeloop, which write the same format."""

    usage: _Usage = _Usage()
    total_cost_usd: float | None = None
    num_turns: int | None = None
    session_id: str = ""
    errors: list[str] = []


class _Cache(Struct, frozen=True):
    read: int = 0
    write: int = 0


class _Tokens(Struct, frozen=True):
    input: int = 0
    output: int = 0
    cache: _Cache = _Cache()


class _Part(Struct, frozen=True):
    cost: float = 0.0
    tokens: _Tokens = _Tokens()


class _Line(Struct, frozen=True, rename={"session_id": "sessionID"}):
    """An output line of OpenCode. A line of the type `step_finish` has the usage of a step."""

    type: str = ""
    session_id: str = ""
    part: _Part = _Part()


def read_result(output: str) -> ReportedUsage:
    """Return the usage in the last output line of codeloop or Claude Code."""
    try:
        result = msgspec.json.decode(output.splitlines()[-1], type=_Result)
    except (IndexError, msgspec.DecodeError):
        return ReportedUsage(error="It ended without a result.")
    usage = result.usage
    return ReportedUsage(
        cost=result.total_cost_usd,
        input_tokens=usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens,
        output_tokens=usage.output_tokens,
        steps=result.num_turns,
        session_id=result.session_id,
        error="; ".join(result.errors),
    )


def read_steps(output: str) -> ReportedUsage:
    """Return the sum of the steps in the output of OpenCode."""
    steps: list[_Line] = []
    for text in output.splitlines():
        with suppress(msgspec.DecodeError):
            line = msgspec.json.decode(text, type=_Line)
            steps += [line] if line.type == "step_finish" else []
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


def read_nothing(_output: str) -> ReportedUsage:
    """Return no usage: the program reports none."""
    return ReportedUsage()


class BenchAgent(Struct, frozen=True):
    """An agent that a benchmark runs. `command` contains `{prompt}`, and `{flags}` where `model_flags` go.

    `has_bare_model`: the program takes the name of a model without its provider. `read`: parses the program's output.
    """

    name: str
    command: tuple[str, ...]
    model_flags: tuple[str, ...] = ("--model", "{model}")
    has_bare_model: bool = False
    read: Callable[[str], ReportedUsage] = read_nothing

    def make_command(self, prompt: str, model: str | None) -> list[str]:
        """Return the command line for a prompt. `model`: as `PROVIDER/MODEL`; None: the agent's default."""
        flags = self.model_flags if model else ()
        words = [word for part in self.command for word in (flags if part == "{flags}" else (part,))]
        model_name = self._name_model(model)
        return [word.replace("{model}", model_name).replace("{prompt}", prompt) for word in words]

    def _name_model(self, model: str | None) -> str:
        """Return the name by which the program knows a model; "" for its default."""
        return (model or "").partition("/")[2] if self.has_bare_model and "/" in (model or "") else model or ""


ROWS = (
    BenchAgent("codeloop", (*CODELOOP, "{flags}", "--", "{prompt}"), read=read_result),
    BenchAgent("opencode", ("opencode", "run", "--format", "json", "{flags}", "{prompt}"), read=read_steps),
    BenchAgent(
        "claude",
        ("claude", "-p", "--output-format", "json", "--permission-mode", "bypassPermissions", "{flags}", "{prompt}"),
        has_bare_model=True,
        read=read_result,
    ),
    BenchAgent("codex", ("codex", "exec", "--full-auto", "{flags}", "{prompt}"), has_bare_model=True),
    BenchAgent("gemini", ("gemini", "--yolo", "{flags}", "--prompt", "{prompt}"), has_bare_model=True),
    BenchAgent(NOTHING, ()),
    BenchAgent(SOLUTION, ()),
)
NAMES = ", ".join(row.name for row in ROWS)


def find_agent(choice: str, flags: tuple[str, ...] = ()) -> BenchAgent:
    """Return the agent that a user names: by its name, `codeloop:AGENT`, or `NAME=COMMAND`.

    `flags`: of `codeloop run`. Raises UsageProblem if the agent is unknown or not installed.
    """
    if "=" in choice:
        name, _, command = choice.partition("=")
        words = tuple(shlex.split(command))
        if not name or "{prompt}" not in command:
            raise UsageProblem(f"{choice!r} is no agent: write NAME=COMMAND, with {{prompt}} where the prompt belongs.")
        return _check_installed(BenchAgent(name, words))
    name, _, codeloop_agent = choice.partition(":")
    row = next((row for row in ROWS if row.name == name), None)
    if row is None or (codeloop_agent and name != "codeloop"):
        raise UsageProblem(f"There is no agent {choice}: {NAMES}, codeloop:AGENT or NAME=COMMAND.")
    if name == "codeloop":
        more = (*flags, *(("--agent", codeloop_agent) if codeloop_agent else ()))
        return msgspec.structs.replace(row, name=choice, command=(*CODELOOP, *more, "{flags}", "--", "{prompt}"))
    return _check_installed(row)


def _check_installed(agent: BenchAgent) -> BenchAgent:
    """Return the agent. Raises UsageProblem if its program is not on the PATH."""
    if agent.command and find_program(agent.command[0], os.environ.get("PATH")) is None and "/" not in agent.command[0]:
        raise UsageProblem(f"{agent.command[0]} is not installed: it is not on the PATH. Install it, or leave it out.")
    return agent
