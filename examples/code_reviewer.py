"""Review what is not committed yet, as data: `python code_reviewer.py [DIRECTORY]`.
Exit code 1: there is a blocker.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Literal

import codeloop


@dataclass
class Remark:
    file: str
    line: int
    severity: Literal["blocker", "minor", "praise"]
    text: str


@dataclass
class Review:
    summary: str
    remarks: list[Remark]


async def main(directory: str = ".") -> int:
    async with codeloop.open(
        directory, profile="read-only"
    ) as project:  # it reads, and changes nothing
        answer = await project.ask(
            "Review the changes that `git diff HEAD` shows. Look at the code around them before you judge.",
            result=Review,
        )
    print(answer.result.summary)
    for remark in answer.result.remarks:
        print(f"{remark.file}:{remark.line}: {remark.severity}: {remark.text}")
    return int(any(remark.severity == "blocker" for remark in answer.result.remarks))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
