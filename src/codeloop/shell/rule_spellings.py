"""How rules may spell a command: the words that an "always" for it allows, and its other spellings.

For example `git -C d push origin` is identified by `git push`, and a rule for `git push *` is about it.
"""

from codeloop.shell.effects import GIT_OPTIONS
from codeloop.shell.leading_options import LeadingOptions, find_operand
from codeloop.shell.runners import runs_later_word
from codeloop.shell.simple_command import Redirect, SimpleCommand
from codeloop.shell.word import Word, make_word

# Programs whose commands are identified by two words (`git push`), and commands identified by three.
_TWO_WORD_NAMES = """
apt apt-get aws az brew bun bundle cargo cmake composer conda deno docker dotnet flutter gcloud gem gh git glab go
gradle gradlew helm heroku hg just kubectl launchctl make mise mix mvn mvnw mypy nix npm npx nvm pdm php pip pip3 pipenv
pnpm podman poetry pre-commit pulumi rake rbenv ruff rustup sbt snap stack
svn swift systemctl task terraform tox turbo uv uvx vercel wrangler xcodebuild yarn zig
"""
_THREE_WORD_NAMES = """
aws ec2;aws iam;aws s3;aws s3api;az account;az group;az vm;bun run;bun x;cargo run;cargo test;composer run-script;
conda env;deno task;docker builder;docker buildx;docker compose;docker container;docker image;docker network;
docker system;docker volume;dotnet tool;
gcloud compute;gcloud container;gh api;gh issue;gh pr;gh release;gh repo;gh run;gh workflow;
git bisect;git config;git remote;git stash;git submodule;git worktree;go mod;go tool;go work;helm repo;kubectl config;
kubectl rollout;npm exec;npm run;npm run-script;npx tsx;nx run;pdm run;pip cache;pipenv run;pnpm dlx;pnpm exec;pnpm run;
podman compose;podman container;podman image;poetry run;poetry self;rustup component;rustup target;rustup toolchain;
swift package;terraform state;terraform workspace;uv pip;uv run;uv tool;yarn dlx;yarn run;yarn workspace
"""

_TWO_WORD_PROGRAMS = frozenset(_TWO_WORD_NAMES.split())
_THREE_WORD_COMMANDS = frozenset(row.strip() for row in _THREE_WORD_NAMES.split(";"))
# By program with subcommands: the options that may stand before the subcommand.
_PROGRAM_OPTIONS = {
    "aws": LeadingOptions(
        "--profile --region --output --endpoint-url --query", "--debug --no-cli-pager --no-verify-ssl"
    ),
    "cargo": LeadingOptions("--color --config -C -Z", "-q -v -vv --frozen --locked --offline --quiet --verbose"),
    "docker": LeadingOptions("-c -H -l --config --context --host --log-level", "-D --debug --tls --tlsverify"),
    "gh": LeadingOptions("-R --repo"),
    "git": GIT_OPTIONS,
    "go": LeadingOptions("-C"),
    "helm": LeadingOptions("-n --kube-context --kubeconfig --namespace", "--debug"),
    "kubectl": LeadingOptions("-n -s --as --cluster --context --kubeconfig --namespace --server --token --user"),
    "npm": LeadingOptions(
        "-w --prefix --registry --userconfig --workspace", "-g -s --global --json --silent --workspaces"
    ),
    "pip": LeadingOptions(
        "--cache-dir --log --proxy --python --timeout", "-q -v --isolated --quiet --require-virtualenv"
    ),
    "pnpm": LeadingOptions("-C -F --dir --filter", "-r -w --recursive --silent --workspace-root"),
    "systemctl": LeadingOptions(
        "-H -M -n -o -p -t --host --machine --root", "-q --no-pager --now --quiet --system --user"
    ),
    "uv": LeadingOptions(
        "--cache-dir --color --config-file --directory --project", "-n -q -v --no-cache --offline --quiet"
    ),
    "yarn": LeadingOptions("--cwd", "-s --silent"),
}
# The most words that are taken for a subcommand, and for the start of a command that a runner runs.
_MAX_SUBCOMMANDS = 8
_MAX_COMMAND_WORDS = 32


def find_leading_words(words: list[str]) -> list[str]:
    """Return the words that identify a command and that an "always" allows: `git commit`, `npm run build`, `ls`."""
    if " ".join(words[:2]) in _THREE_WORD_COMMANDS and len(words) > 2:
        return words[:3]
    return words[: 2 if words[0] in _TWO_WORD_PROGRAMS else 1]


def list_spellings(command: SimpleCommand) -> tuple[str, ...]:
    """Return other spellings of a command, marks included, for rules that deny or ask about particular commands.

    `./bin/RM x` is also `rm x`, and `git -C d push` is also `git push`. If the options before a subcommand are not all
    known, each word that may be the subcommand makes a spelling. If the program runs the command after its options,
    each word that may begin that command does.
    """
    if not command.words[0].is_known:
        return ()
    lowered_command = _lower_program(command.words, command.redirects)
    name = lowered_command.words[0]
    spellings = [lowered_command]
    spellings += [
        SimpleCommand((name, *rest), command.redirects) for rest in _list_subcommands(name.value, command.words)
    ]
    if runs_later_word(lowered_command.words):
        last = min(len(command.words), _MAX_COMMAND_WORDS)
        spellings += [_lower_program(command.words[index:], command.redirects) for index in range(1, last)]
    texts = dict.fromkeys(spelling.marked_text or spelling.text for spelling in spellings)
    texts.pop(command.marked_text or command.text, None)
    return tuple(texts)


def _lower_program(words: tuple[Word, ...], redirects: tuple[Redirect, ...]) -> SimpleCommand:
    """Return a command under the bare name of its program in small letters: some file systems ignore case."""
    name = words[0]
    short = make_word(name.value.rpartition("/")[2].lower() or name.value) if name.is_known else name
    return SimpleCommand((short, *words[1:]), redirects)


def _list_subcommands(name: str, words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    """Return the possible subcommands behind the options of a program, each with all words after it."""
    if name not in _TWO_WORD_PROGRAMS or len(words) < 3 or not _may_be_option(words[1]):
        return []
    # `cargo +nightly build`: the toolchain is an option that no row lists.
    if name in _PROGRAM_OPTIONS and not words[1].value.startswith("+"):
        index = find_operand(words, _PROGRAM_OPTIONS[name])
        if index is not None:
            return [words[index:]]
    # The options are unknown: the subcommand may be behind any of them, or behind its value.
    starts = [index for index in range(2, len(words)) if any(map(_may_be_option, words[max(1, index - 2) : index]))]
    return [words[index:] for index in starts if not words[index].value.startswith("-")][:_MAX_SUBCOMMANDS]


def _may_be_option(word: Word) -> bool:
    return not word.is_known or word.value[:1] in {"-", "+"}
