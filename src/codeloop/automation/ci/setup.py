"""Makes the workflow file of a host that starts `codeloop ci run` (`codeloop ci setup`)."""

import re
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from codeloop.automation.ci.job import LABEL, TRIGGER
from codeloop.schema.errors import CodeloopError, UsageProblem

_SECRETS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
_FILES = {"github": ".github/workflows/codeloop.yml", "gitlab": ".gitlab/codeloop.yml"}
_PLAIN_VALUE = re.compile(r"[\w./:@+-]+")
"""Values that mean the same in YAML and in the shell lines of the file as on the command line."""


class SetupFile(Struct, frozen=True):
    """A file to write into the project, and the steps that the user has to do after that, a line each."""

    path: Path
    text: str
    steps: tuple[str, ...]


def make_setup(host: str, model: str, trigger: str, secret: str, minutes: int, max_cost: float | None) -> SetupFile:
    """Return the file for a host. `secret`: the variable with the model's key, "" to derive its name from the model.

    Raises UsageProblem for a value that can't stand in the file.
    """
    provider = model.partition("/")[0]
    prefix = re.sub(r"\W", "_", provider).upper()
    secret = secret or _SECRETS.get(provider or "anthropic", f"{prefix}_API_KEY")
    for name, value in (("--model", model), ("--trigger", trigger), ("--secret", secret)):
        if value and not _PLAIN_VALUE.fullmatch(value):
            raise UsageProblem(f"{name}: only letters, digits and . / : @ + - _ can be in it.")
    flags = [
        *(("--model", model) if model else ()),
        *(("--trigger", trigger) if trigger != TRIGGER else ()),
        *(("--max-cost", f"{max_cost:g}") if max_cost is not None else ()),
    ]
    values = {
        "secret": secret,
        "trigger": trigger,
        "label": LABEL,
        "minutes": str(minutes),
        "flags": " ".join(flags),
    }
    text = files("codeloop.automation.ci").joinpath("templates", f"{host}.yml").read_text(encoding="utf-8")
    text = re.sub(r"(?<!\{)\{(\w+)\}(?!\})", lambda match: values.get(match[1], match[0]), text)
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    return SetupFile(Path(_FILES[host]), text, _list_steps(host, secret, trigger))


def write_setup(folder: Path, setup: SetupFile, *, force: bool) -> bool:
    """Write the file below a folder; return False if it is there already, with this text.

    Raises UsageProblem if a file with another text is there, unless `force` is true.
    """
    path = folder / setup.path
    try:
        if path.exists():
            if path.read_text(encoding="utf-8") == setup.text:
                return False
            if not force:
                raise UsageProblem(f"{setup.path} is there already and differs. --force replaces it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(setup.text, encoding="utf-8")
    except OSError as error:
        raise CodeloopError(f"{path} can't be written: {error.strerror}.") from error
    return True


def _list_steps(host: str, secret: str, trigger: str) -> tuple[str, ...]:
    ask = f"Write a comment on an issue with `{trigger}` on a line of its own, and what you want on the others."
    if host == "github":
        return (
            f"Add the secret {secret}: Settings, Secrets and variables, Actions. Or: gh secret set {secret}",
            "Allow it to open pull requests: Settings, Actions, General, Workflow permissions, the box at the end.",
            "Commit the file to the default branch, and push it.",
            ask,
        )
    return (
        f"Add the masked variables {secret} and CODELOOP_GITLAB_TOKEN: Settings, CI/CD, Variables.",
        "Include the file in .gitlab-ci.yml: `include: .gitlab/codeloop.yml`",
        "For comments: add the webhook that the head of the file shows.",
        ask,
    )
