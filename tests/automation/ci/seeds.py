"""Forty small functions, each with a change that breaks it and one that does not."""

import ast
import re
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Seed:
    """`bug` and `clean` replace one piece of the source; `arguments` show the bug.
    `meant`: `clean` is a new rule.
    """

    source: str
    arguments: str
    bug: tuple[str, str]
    clean: tuple[str, str]
    meant: bool = False

    @property
    def name(self) -> str:
        return self.source.partition("(")[0].removeprefix("def ")

    @property
    def call(self) -> str:
        return f"{self.name}({self.arguments})"

    def changed(self, *, is_bug: bool) -> str:
        old, new = self.bug if is_bug else self.clean
        assert self.source.count(old) == 1, (self.name, old)
        return self.source.replace(old, new)

    def line(self, *, is_bug: bool) -> int:
        """Return the first line that the change touches."""
        before, after = self.source.splitlines(), self.changed(is_bug=is_bug).splitlines()
        return next(
            number
            for number, line in enumerate(after, 1)
            if number > len(before) or before[number - 1] != line
        )

    def value(self, source: str, folder: Path) -> Any:
        """Return the call's value under a source, which is run as a file in `folder`."""
        path = folder / f"{self.name}.py"
        path.write_text(source)
        return runpy.run_path(str(path))[self.name](*ast.literal_eval(f"({self.arguments},)"))


def read_seeds() -> tuple[Seed, ...]:
    """Read the file beside this one: sources, each with arguments, a bug,
    and a change that is clean or meant.
    """
    text = Path(__file__).with_suffix(".txt").read_text()
    change = r"(.*?)\n# becomes\n(.*?)\n"
    form = rf"(def .*?\n)# called with\n(.*?)\n# bug\n{change}# (clean|meant)\n{change}(?:\n\n|\Z)"
    rows = re.findall(form, text, re.DOTALL)
    return tuple(
        Seed(source, arguments, (old, new), (plain, other), kind == "meant")
        for source, arguments, old, new, kind, plain, other in rows
    )


SEEDS = read_seeds()
