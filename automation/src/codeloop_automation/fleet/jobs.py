"""The jobs of a fleet, and the reader of the file that lists them, in JSON, JSON Lines,
CSV or YAML.
"""

import csv
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from codeloop.schema.errors import UsageProblem
from codeloop_automation.bounds import FLEET_JOBS, FLEET_TABLE

JOB_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


class FleetJob(Struct, frozen=True, forbid_unknown_fields=True):
    """One job, in a clone of `repository` (a path or URL) at the branch `base`
    ("": the default branch).

    It has either a `prompt` for one turn, or a `goal` to work on until the `checks` (command lines)
    pass. `id`: the name of the job in results. Jobs of a higher `priority` are done first.
    """

    repository: str
    id: str = ""
    prompt: str = ""
    goal: str = ""
    checks: tuple[str, ...] = ()
    base: str = ""
    model: str = ""
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0

    def __post_init__(self) -> None:
        """Check the values that become names of folders and arguments of git. Raises ValueError."""
        if self.id and re.fullmatch(JOB_ID_PATTERN, self.id) is None:
            raise ValueError(f"an id is letters, digits, `.`, `_` and `-`, not {self.id!r}")
        if self.repository.startswith("-") or self.base.startswith("-"):
            raise ValueError("no repository and no base begins with `-`")


def read_jobs(file: Path) -> list[FleetJob]:
    """Read a file of jobs, in which paths of repositories are relative to its folder.
    Raises UsageProblem.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageProblem(f"The jobs can't be read from {file}: {error.strerror}.") from error
    if len(content) > FLEET_TABLE.value:
        raise UsageProblem(f"{file} is larger than {FLEET_TABLE.value:,} bytes. Split it.")
    try:
        rows = _parse_rows(file.suffix.lower(), content.decode())
    except (ValueError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{file} can't be read: {error}") from error
    if not rows or len(rows) > FLEET_JOBS.value:
        raise UsageProblem(f"{file} holds {len(rows)} jobs; it takes 1 to {FLEET_JOBS.value:,}.")
    jobs = [_make_job(file, number, row) for number, row in enumerate(rows, 1)]
    ids: set[str] = set()
    for job in jobs:
        if job.id in ids:
            raise UsageProblem(
                f"Two jobs of {file} are named {job.id}. Give each an id of its own."
            )
        ids.add(job.id)
    return jobs


def _parse_rows(suffix: str, text: str) -> list[Any]:
    """Parse the text of a file with this suffix; JSON for an unknown one. Raises ValueError."""
    document: Any
    match suffix:
        # An empty cell of CSV is a field that is not given.
        case ".csv":
            return [
                {key: value for key, value in row.items() if value}
                for row in csv.DictReader(io.StringIO(text))
            ]
        case ".jsonl" | ".ndjson":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        case ".yaml" | ".yml":
            import yaml

            try:
                document = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(str(error)) from error
        case _:
            document = json.loads(text)
    try:
        return msgspec.convert(document, list[Any])
    except msgspec.ValidationError as error:
        raise ValueError("a list of jobs is expected") from error


def _make_job(file: Path, number: int, row: Any) -> FleetJob:
    """Return the job of a row, with an absolute path and an id. `number`: of the row, from 1.
    Raises UsageProblem.
    """
    try:
        fields = msgspec.convert(row, dict[str, Any])
        # CSV has no lists and numbers: its cell is one check.
        if isinstance(fields.get("checks"), str):
            fields["checks"] = [fields["checks"]]
        if re.fullmatch(r"-?\d{1,4}", str(fields.get("priority"))):
            fields["priority"] = int(fields["priority"])
        job = msgspec.convert(fields, FleetJob)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"Job {number} of {file} can't be used: {error}.") from error
    if bool(job.prompt.strip()) == bool(job.goal.strip()) or (job.checks and not job.goal):
        raise UsageProblem(
            f"Job {number} of {file} has to have either a prompt, or a goal with its checks."
        )
    # `user@host:path` is the short form of an SSH address, not a path.
    if "://" not in job.repository and not re.match(r"[\w.-]+@[\w.-]+:", job.repository):
        job = msgspec.structs.replace(job, repository=str((file.parent / job.repository).resolve()))
    if not job.id:
        # The id depends on the row only, so a job keeps it when the file is read
        # again or rows are added.
        fields = msgspec.to_builtins(job)
        # When it is done is not what is done.
        del fields["priority"]
        digest = hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:8]
        stem = (
            re.sub(r"[^A-Za-z0-9._-]+", "-", Path(job.repository).name.removesuffix(".git")).strip(
                "-."
            )
            or "job"
        )
        job = msgspec.structs.replace(job, id=f"{stem[:60]}-{digest}")
    return job
