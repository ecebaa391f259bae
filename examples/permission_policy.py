"""A policy of your own, as code: `python permission_policy.py "PROMPT" [DIRECTORY]`.
It keeps a log, policy.log.
"""

import asyncio
import sys
from pathlib import Path

import codeloop

RULES: dict[str, codeloop.Action] = {"bash": "ask", "edit": "ask", "webfetch": "ask"}
HARMLESS = ("git status", "git diff", "git log", "ls", "pytest", "python -m pytest")


class Policy:
    """Allows harmless commands and edits below `src` and `tests`,
    and nothing at all after ten refusals.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self.refused = 0

    def __call__(self, question: codeloop.PermissionQuestion) -> codeloop.Allow | codeloop.Deny:
        reply = self._judged(question)
        with self._log.open("a") as log:
            log.write(f"{type(reply).__name__} {question}\n")
        return reply

    def _judged(self, question: codeloop.PermissionQuestion) -> codeloop.Allow | codeloop.Deny:
        match question.permission:
            case "bash" if all(pattern.startswith(HARMLESS) for pattern in question.patterns):
                return codeloop.Allow(always=True)
            case "edit" if all(
                pattern.startswith(("src/", "tests/")) for pattern in question.patterns
            ):
                return codeloop.Allow()
            case _:
                self.refused += 1
                reason = f"The policy of this program does not allow {question}. Stay within src and tests."
                return codeloop.Deny(reason, stop=self.refused >= 10)


async def main(prompt: str, directory: str = ".") -> str:
    policy = Policy(Path(directory) / "policy.log")
    async with codeloop.open(directory, permission=RULES, on_permission=policy) as project:
        answer = await project.ask(prompt)
    print(answer.text)
    return answer.text


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
