"""Three sessions on one task, side by side, and a fourth that decides: `python
supervisor.py "TASK" [DIRECTORY]`.
"""

import asyncio
import sys
from dataclasses import dataclass

import codeloop

ROLES = {
    "tester": "Say which tests the task needs.",
    "designer": "Say how you would build it: files, functions, names.",
    "critic": "Say what can go wrong, and what the task leaves open.",
}


@dataclass
class Plan:
    steps: list[str]
    risks: list[str]


async def main(task: str, directory: str = ".") -> Plan:
    async with codeloop.open(directory, profile="read-only") as project:

        async def advised(role: str, what: str) -> str:
            session = await project.session(
                title=role, limits=codeloop.TurnLimits(steps=15, seconds=300)
            )
            async for event in session.stream(f"{what} Change nothing. The task: {task}"):
                match event:
                    case codeloop.ToolStarted(use=use):
                        print(f"{role}: {use.tool}")
                    case codeloop.TurnDone(answer=answer):
                        return f"## {role}\n{answer.text}"
                    case _:
                        pass
            return ""

        advice = await asyncio.gather(*(advised(role, what) for role, what in ROLES.items()))
        decided = await project.ask(
            "Make one plan of this advice:\n\n" + "\n\n".join(advice), result=Plan
        )
    for number, step in enumerate(decided.result.steps, 1):
        print(f"{number}. {step}")
    return decided.result


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
