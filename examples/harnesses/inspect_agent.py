"""codeloop as an agent of Inspect AI: it runs in a sample's sandbox,
and its steps are the sample's messages.

inspect eval inspect_evals/swe_bench --solver inspect_agent.py@codeloop -S
model=anthropic/claude-sonnet-5
"""

import json
import os
from typing import Any

from inspect_ai.agent import Agent, AgentState, agent
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall
from inspect_ai.util import sandbox, store


@agent
def codeloop(
    model: str = "", max_steps: int = 200, max_cost: float = 5.0, timeout: int = 3600
) -> Agent:
    """Run a sample's prompt with `codeloop run`, which has to be installed in the sandbox.

    `model`: PROVIDER/MODEL, whose key is handed on; `max_cost` in dollars, `timeout` in seconds.
    The trajectory (ATIF) stands in the sample's store as `codeloop:trajectory`, what it used in the
    output's usage and as `codeloop:cost`.
    """

    async def execute(state: AgentState) -> AgentState:
        limits = [
            "--max-steps",
            str(max_steps),
            "--max-cost",
            str(max_cost),
            "--timeout",
            str(timeout),
        ]
        chosen = ["--model", model] if model else []
        flags = ["--output-format", "json", "--auto", "--profile", "yolo", *limits, *chosen]
        prompt = "\n\n".join(
            message.text for message in state.messages if message.role in {"system", "user"}
        )
        command = ["codeloop", "run", *flags, "--", prompt]
        done = await sandbox().exec(command, env=find_keys(model), timeout=timeout + 60)
        try:
            result = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            raise RuntimeError(f"codeloop ended without a result: {done.stderr}") from None
        if result["session_id"]:
            exported = await sandbox().exec(
                ["codeloop", "export", result["session_id"], "--format", "atif"]
            )
            trajectory = json.loads(exported.stdout)
            store().set("codeloop:trajectory", trajectory)
            store().set("codeloop:cost", result["total_cost_usd"])
            state.messages += [
                message for step in trajectory["steps"][1:] for message in read_step(step)
            ]
        text = result.get("result") or "\n".join(result.get("errors", []))
        state.output = ModelOutput.from_content(model or "codeloop", text)
        used = result["usage"]
        cached = used["cache_read_input_tokens"]
        total = (
            used["input_tokens"]
            + cached
            + used["cache_creation_input_tokens"]
            + used["output_tokens"]
        )
        state.output.usage = ModelUsage(
            input_tokens=used["input_tokens"],
            output_tokens=used["output_tokens"],
            total_tokens=total,
            input_tokens_cache_read=cached,
            input_tokens_cache_write=used["cache_creation_input_tokens"],
        )
        return state

    return execute


def find_keys(model: str) -> dict[str, str]:
    """Return the variables with the key of a model's service, and of settings."""
    provider = model.partition("/")[0].upper().replace("-", "_")
    names = (f"{provider}_API_KEY", "CODELOOP_CONFIG_CONTENT")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def read_step(step: dict[str, Any]) -> list[ChatMessage]:
    """Return a step of a trajectory as messages: the answer with its calls, and their results."""
    calls = [
        ToolCall(
            id=call["tool_call_id"], function=call["function_name"], arguments=call["arguments"]
        )
        for call in step.get("tool_calls", [])
    ]
    results = step.get("observation", {}).get("results", [])
    answers = [
        ChatMessageTool(content=each["content"], tool_call_id=call.id, function=call.function)
        for each, call in zip(results, calls, strict=True)
    ]
    return [ChatMessageAssistant(content=step["message"], tool_calls=calls or None), *answers]
