"""`codeloop ci setup`: the workflow file that makes a host start `codeloop ci run`,
and the steps for the user.
"""

import re
from pathlib import Path

from msgspec import Struct

from codeloop.kit.new_file import write_new_file
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.installation import check_package_file
from codeloop_automation.ci.job import DEFAULT_LABEL, DEFAULT_TRIGGER
from codeloop_automation.ci.setup_file.install_source import InstallSource

_TEMPLATES = Path(__file__).with_name("templates")

_SECRET_NAMES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GEMINI_API_KEY",
}
_FILE_PATHS = {"github": ".github/workflows/codeloop.yml", "gitlab": ".gitlab/codeloop.yml"}
# Values of these characters need no quotes, neither in YAML nor in the shell lines of the file.
_PLAIN_VALUE = r"[\w./:@+-]+"


class SetupFile(Struct, frozen=True):
    """A file for the project. `steps`: what the user has to do afterwards, a line each."""

    path: Path
    text: str
    steps: tuple[str, ...]


def make_setup_file(
    host: str,
    source: InstallSource,
    model: str,
    trigger: str,
    secret: str,
    minutes: int,
    max_cost: float | None,
) -> SetupFile:
    """Return the file for a host. `secret`: the variable with the API key;
    "": its name is derived from the model.

    `source`: what the job installs.

    Raises UsageProblem for a value that can't stand in the file.
    """
    provider = model.partition("/")[0]
    prefix = re.sub(r"\W", "_", provider).upper()
    secret = secret or _SECRET_NAMES.get(provider or "anthropic", f"{prefix}_API_KEY")
    for name, value in (("--model", model), ("--trigger", trigger), ("--secret", secret)):
        if value and not re.fullmatch(_PLAIN_VALUE, value):
            raise UsageProblem(f"{name}: only letters, digits and . / : @ + - _ can be in it.")
    flags = [
        *(("--model", model) if model else ()),
        *(("--trigger", trigger) if trigger != DEFAULT_TRIGGER else ()),
        *(("--max-cost", f"{max_cost:g}") if max_cost is not None else ()),
    ]
    values = {
        "secret": secret,
        "trigger": trigger,
        "label": DEFAULT_LABEL,
        "minutes": str(minutes),
        "flags": " ".join(flags),
        "address": source.address,
        "commit": source.commit,
    }
    text = check_package_file(_TEMPLATES / f"{host}.yml").read_text(encoding="utf-8")
    # GitHub's own expressions, `${{ ... }}`, have two braces and stay.
    text = re.sub(r"(?<!\{)\{(\w+)\}(?!\})", lambda match: values.get(match[1], match[0]), text)
    # A placeholder without a value leaves a space at the end of its line.
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    return SetupFile(Path(_FILE_PATHS[host]), text, _list_steps(host, secret, trigger))


def write_setup_file(folder: Path, setup: SetupFile, *, force: bool) -> bool:
    """Write the file below a folder; return False if it exists with the same text.

    Raises UsageProblem if a file with another text is there, unless `force` is true.
    """
    path = folder / setup.path
    try:
        if path.is_symlink():
            raise UsageProblem(f"{setup.path} is a link. Remove it first.")
        if path.exists():
            if path.read_text(encoding="utf-8") == setup.text:
                return False
            if not force:
                raise UsageProblem(
                    f"{setup.path} is there already and differs. --force replaces it."
                )
        write_new_file(path, setup.text.encode(), base=folder, mode=0o666)
    except OSError as error:
        raise CodeloopError(f"{path} can't be written: {error.strerror}.") from error
    return True


def _list_steps(host: str, secret: str, trigger: str) -> tuple[str, ...]:
    """Return the steps that the user has to do after the file was written."""
    usage = f"Write a comment on an issue with `{trigger}` on a line of its own, and what you want on the others."
    if host == "github":
        return (
            f"Add the secret {secret}: Settings, Secrets and variables, Actions. Or: gh secret set {secret}",
            "Allow it to open pull requests: Settings, Actions, General, Workflow permissions, the box at the end.",
            "Commit the file to the default branch, and push it.",
            usage,
        )
    return (
        f"Add the masked variables {secret} and CODELOOP_GITLAB_TOKEN: Settings, CI/CD, Variables.",
        "Include the file in .gitlab-ci.yml: `include: .gitlab/codeloop.yml`",
        "For comments: add the webhook that the head of the file shows.",
        usage,
    )
