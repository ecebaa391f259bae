"""Turn texts into records: `python extraction.py FILE...` prints a line
of JSON for each invoice.
"""

import asyncio
import sys
from datetime import date
from pathlib import Path

import msgspec

import codeloop


class Item(msgspec.Struct):
    what: str
    amount: float


class Invoice(msgspec.Struct):
    """An invoice as it was sent."""

    number: str
    issued: date
    seller: str
    items: list[Item]
    currency: str = "EUR"

    @property
    def total(self) -> float:
        return sum(item.amount for item in self.items)


async def main(*files: str) -> list[Invoice]:
    found: list[Invoice] = []
    async with codeloop.open(".", profile="read-only") as project:
        for file in files:
            try:
                answer = await project.ask(
                    "Read the invoice out of the file.", files=[file], result=Invoice
                )
            except codeloop.CodeloopError as error:
                print(f"{file}: {error}", file=sys.stderr)
                continue
            found.append(answer.result)
            line = {
                "file": Path(file).name,
                "total": answer.result.total,
                **msgspec.to_builtins(answer.result),
            }
            print(msgspec.json.encode(line).decode())
    return found


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
