"""Write the changes since a tag into CHANGELOG.md: `python changelog_writer.py
v1.2.0 [DIRECTORY]`.
"""

import asyncio
import subprocess
import sys

import codeloop


async def main(tag: str, directory: str = ".") -> None:
    def commits() -> list[dict[str, str]]:
        """List the commits since the last release, oldest first: hash and title."""
        command = ["git", "log", "--reverse", "--format=%h%x09%s", f"{tag}..HEAD"]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
        return [
            dict(zip(("hash", "title"), line.split("\t", 1), strict=True))
            for line in done.stdout.splitlines()
        ]

    rules: dict[str, dict[str, codeloop.Action]] = {"edit": {"*": "deny", "CHANGELOG.md": "allow"}}
    async with codeloop.open(directory, tools=[commits], permission=rules) as project:
        answer = await project.ask(
            "Add the commits of the tool `commits` to CHANGELOG.md under `## Unreleased`, as one line each for users. "
            "Leave out what users do not notice."
        )
    print(answer.text)
    print("changed:", *answer.files)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
