"""Fix the failing tests of several repositories,
two at a time: `python test_fixer.py DIRECTORY...`.
"""

import asyncio
import sys

import codeloop

PROMPT = "Run the tests. If some fail, fix the code, not the tests, until all pass. Say in one line what was wrong."
LIMITS = codeloop.TurnLimits(steps=40, cost=1.0, seconds=900)


async def fix(directory: str, turn: asyncio.Semaphore) -> str:
    """Return how it went in one repository."""
    async with turn, codeloop.open(directory, limits=LIMITS) as project:
        try:
            answer = await project.ask(PROMPT)
        except codeloop.LimitReached as error:
            return f"not done: {error}"
        except codeloop.TurnFailed as error:
            return f"failed: {error}"
        return f"{answer.text} ({len(answer.files)} files, ${answer.cost:.2f})"


async def main(*directories: str) -> dict[str, str]:
    turn = asyncio.Semaphore(2)
    ends = await asyncio.gather(*(fix(directory, turn) for directory in directories))
    for directory, end in zip(directories, ends, strict=True):
        print(f"{directory}: {end}")
    return dict(zip(directories, ends, strict=True))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
