"""What a shell line would do, without running it: its simple commands, the paths it names, whether it only reads."""

import time

from msgspec import Struct

from codeloop.kit.wildcard import ANY
from codeloop.permission.shell.command import Simple
from codeloop.permission.shell.effects import is_destructive, only_reads
from codeloop.permission.shell.parser import Script, TooMuch
from codeloop.permission.shell.paths import named_paths
from codeloop.schema.limits import BASH_PARSE, BASH_SIZE
from codeloop.schema.permission import Need, Writes

SHOWN = 1_000
COMPARED = 256
# Commands of which two words, or three, say what they are.
_TWO = """
apt apt-get aws az brew bun bundle cargo cmake composer conda deno docker dotnet flutter gcloud gem gh git glab go
gradle gradlew helm heroku hg just kubectl launchctl make mise mix mvn mvnw mypy nix npm npx nvm pdm php pip pip3 pipenv
pnpm podman poetry pre-commit pulumi rake rbenv ruff rustup sbt snap stack
svn swift systemctl task terraform tox turbo uv uvx vercel wrangler xcodebuild yarn zig
"""
_THREE = """
aws ec2;aws iam;aws s3;aws s3api;az account;az group;az vm;bun run;bun x;cargo run;cargo test;composer run-script;
conda env;deno task;docker builder;docker buildx;docker compose;docker container;docker image;docker network;
docker system;docker volume;dotnet tool;
gcloud compute;gcloud container;gh api;gh issue;gh pr;gh release;gh repo;gh run;gh workflow;
git bisect;git config;git remote;git stash;git submodule;git worktree;go mod;go tool;go work;helm repo;kubectl config;
kubectl rollout;npm exec;npm run;npm run-script;npx tsx;nx run;pdm run;pip cache;pipenv run;pnpm dlx;pnpm exec;pnpm run;
podman compose;podman container;podman image;poetry run;poetry self;rustup component;rustup target;rustup toolchain;
swift package;terraform state;terraform workspace;uv pip;uv run;uv tool;yarn dlx;yarn run;yarn workspace
"""

TWO_WORDS = frozenset(_TWO.split())
THREE_WORDS = frozenset(row.strip() for row in _THREE.split(";"))


class Analysis(Struct, frozen=True):
    """What is known of a line before it runs.

    `commands`: the text of every simple command, also of those inside others, one spelling for all ways of quoting.
    `always`: what an "always" would allow, a wildcard a command. `paths`: the paths it names, absolute or relative to
    where it runs, `~` kept. `possible`: what it may run besides, with the marks of `kit.wildcard`. `read_only`: it is
    sure to change nothing. `destructive`: it may delete files that git ignores.
    """

    commands: tuple[str, ...]
    always: tuple[str, ...]
    paths: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    read_only: bool = False
    destructive: bool = False


def analyse(command: str) -> Analysis:
    """Analyse a line of bash. Never fails: what it can't read (too long, too deep, not shell) may run anything."""
    script = Script(deadline=time.monotonic() + BASH_PARSE.seconds)
    try:
        if len(command) > BASH_SIZE.value:
            raise TooMuch
        script.read(command)
    except TooMuch:
        script.is_unknown = True
    found = script.commands
    texts = tuple(dict.fromkeys(simple.text for simple in found)) or (command[:SHOWN].strip() or ":",)
    possible = dict.fromkeys(shortened(simple.possible) for simple in found if simple.possible is not None)
    if script.is_unknown:
        possible = {ANY: None, **possible}
    return Analysis(
        commands=texts,
        always=tuple(dict.fromkeys(_always(simple) for simple in found if simple.words[0].is_known)),
        paths=named_paths(found),
        possible=tuple(possible),
        read_only=not script.is_unknown and bool(found) and all(map(only_reads, found)),
        destructive=any(map(is_destructive, found)) or (script.is_unknown and not found),
    )


def shortened(text: str) -> str:
    """Cut what is compared with rules to a bounded length; the rest is unknown."""
    return text if len(text) <= COMPARED else text[:COMPARED] + ANY


def _always(simple: Simple) -> str:
    known = [word.text for word in simple.words]
    for index, word in enumerate(simple.words):
        if not word.is_known:
            known = known[:index]
            break
    return " ".join(_leading_words(known)) + " *"


def _leading_words(words: list[str]) -> list[str]:
    """Return the words that say what a command is, which an "always" allows: `git commit`, `npm run build`, `ls`."""
    if " ".join(words[:2]) in THREE_WORDS and len(words) > 2:
        return words[:3]
    return words[: 2 if words[0] in TWO_WORDS else 1]


def need_of(command: str, analysis: Analysis) -> Need:
    """Return what running a line that was analysed needs: permission `bash`, a pattern for each simple command."""
    return Need(
        permission="bash",
        patterns=analysis.commands,
        always=analysis.always,
        metadata={"command": command},
        possible=analysis.possible,
        writes=Writes(ignored=analysis.destructive),
    )
