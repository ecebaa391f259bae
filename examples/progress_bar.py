"""Show what the agent does in one line that moves: `python progress_bar.py
"PROMPT" [DIRECTORY]`.
"""

import asyncio
import sys
from typing import TextIO

import codeloop

STEPS = 30


class Bar:
    """One line of a terminal: steps, cost, and what is going on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._step, self._cost, self._doing = 0, 0.0, "thinking"

    def take(self, event: codeloop.SessionEvent) -> None:
        match event:
            case codeloop.StepEnded(number=number, cost=cost):
                self._step, self._cost, self._doing = number, self._cost + cost, "thinking"
            case codeloop.ToolStarted(use=use) | codeloop.ToolReported(use=use):
                self._doing = f"{use.tool} {use.title}".strip()
            case codeloop.TextAdded():
                self._doing = "writing"
            case codeloop.RetryWaiting(message=message):
                self._doing = f"waiting: {message}"
            case _:
                return
        self._draw()

    def _draw(self) -> None:
        done = "#" * round(20 * min(self._step / STEPS, 1))
        self._stream.write(
            f"\r\x1b[K[{done:<20}] step {self._step}, ${self._cost:.3f} {self._doing[:40]}"
        )
        self._stream.flush()


async def main(prompt: str, directory: str = ".", *, stream: TextIO = sys.stderr) -> str:
    bar, text = Bar(stream), ""
    async with codeloop.open(directory, limits=codeloop.TurnLimits(steps=STEPS)) as project:
        session = await project.session()
        async for event in session.stream(prompt):
            bar.take(event)
            if isinstance(event, codeloop.TurnDone):
                text = event.answer.text
    stream.write("\n")
    print(text)
    return text


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
