"""A CI job's agent ends soon enough for the job to report that it was cancelled."""

import asyncio
from pathlib import Path

import pytest

from codeloop.schema.wire import replace
from codeloop_automation.ci import agent_program
from codeloop_automation.ci.agent_program import AgentLimits, AgentProgram

# GitHub kills a cancelled job after 7.5 + 2.5 seconds;
# the comment about the end needs a part of these.
SECONDS_UNTIL_REPORT = 7.5


async def test_an_agent_that_does_not_end_when_it_is_told_to_is_killed_before_the_host_kills_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert agent_program.CI_STOP.seconds < SECONDS_UNTIL_REPORT
    monkeypatch.setattr(agent_program, "CI_STOP", replace(agent_program.CI_STOP, value=300))
    started = tmp_path / "started"
    stuck = ("sh", "-c", f"trap '' TERM; touch {started}; exec sleep 600")
    monkeypatch.setattr(agent_program, "CODELOOP_COMMAND", stuck)
    limits = AgentLimits(cost=1.0, steps=1, seconds=60.0, profile="auto")
    agent = AgentProgram(limits, token="", write_log=lambda _line: None)
    running = asyncio.create_task(agent.run(tmp_path, title="Stuck", prompt="hi"))
    while not started.exists():
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running], timeout=60)
    assert running.cancelled()
