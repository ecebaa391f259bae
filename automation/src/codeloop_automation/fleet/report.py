"""The reports of a fleet: jobs and their sums as JSON,
and all results as one self-contained HTML page.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec

from codeloop.client.formatting import format_cost, format_duration
from codeloop.schema.wire import JSON
from codeloop_automation.fleet.ledger_rows import FleetPullRequest, LedgerRow, RecordedAttempt

_STYLESHEET = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
pre { overflow: auto; padding: .6rem; background: #8881; font-size: 13px; }
.failed { color: #c62828; } .done { color: #2e7d32; }
@media (prefers-color-scheme: dark) { .failed { color: #ef9a9a; } .done { color: #a5d6a7; } }
"""


def describe_progress(sums: JSON, rate: float) -> str:
    """Return one line on how a fleet stands. `sums`: as of `sum_jobs`;
    `rate`: jobs that end a second.
    """
    left = sums["waiting"] + sums["running"]
    states = [f"{sums['done']} of {sums['jobs']} done"]
    states += [
        f"{sums[state]} {state}"
        for state in ("failed", "cancelled", "running", "waiting")
        if sums[state]
    ]
    parts = [", ".join(states), format_cost(sums["cost"])]
    if rate and left:
        parts.append(f"{rate * 60:.1f} a minute, about {format_duration(left / rate * 1000)} left")
    return " · ".join(parts)


def count_failures(rows: Sequence[LedgerRow]) -> list[str]:
    """Return the kinds of failures with their numbers, the most frequent first."""
    kinds = Counter(
        str(row.result.get("reason") or "error") for row in rows if row.state == "failed"
    )
    return [f"{count} {kind}" for kind, count in kinds.most_common()]


def describe_attempt(attempt: RecordedAttempt) -> JSON:
    """Return an attempt as JSON: times in seconds since the epoch, null where it has not ended."""
    return {
        "attempt": attempt.number,
        "place": attempt.place,
        "started": attempt.started,
        "ended": attempt.ended or None,
        "cost": round(attempt.cost, 6),
        "reason": attempt.reason,
        "sessionID": attempt.session,
    }


def describe_job(folder: Path, row: LedgerRow, pulls: Sequence[FleetPullRequest] = ()) -> JSON:
    """Return a job and its result as JSON.

    `folder`: the folder of the fleet. Of the JSON, `cost` is what all attempts have cost; `result`
    the job's as it is stored; `work` the path of the job's clone, "" until the job has ended;
    `pull` the pull request with its changes, or null.
    """
    clone = folder / "jobs" / row.job.id / "work"
    pull = next((each for each in pulls if row.job.id in each.jobs), None)
    return {
        "id": row.job.id,
        "repository": row.job.repository,
        "state": row.state,
        "attempts": row.attempt,
        "cost": round(row.cost, 6),
        "result": row.result,
        "work": str(clone) if clone.is_dir() else "",
        "pull": None if pull is None else msgspec.to_builtins(pull),
    }


def sum_jobs(rows: Sequence[LedgerRow], removed_cost: float = 0.0) -> JSON:
    """Return the number of jobs, also in each state, and the dollars that all have cost.
    `removed_cost`: dollars of jobs that were removed.
    """
    counts = Counter(row.state for row in rows)
    cost = removed_cost + sum(row.cost for row in rows)
    return {
        "jobs": len(rows),
        **{state: counts[state] for state in ("waiting", "running", "done", "failed", "cancelled")},
        "cost": round(cost, 6),
    }


def render_page(
    name: str, folder: Path, rows: Sequence[LedgerRow], pulls: Sequence[FleetPullRequest]
) -> str:
    """Return the page as HTML: the sums, and for each job its cost, answer,
    diff and pull request.
    """
    sums = sum_jobs(rows)
    states = (
        f"{sums['done']} of {sums['jobs']} done, {sums['failed']} failed, {sums['waiting']} waiting"
    )
    head = f"{states} · {format_cost(sums['cost'])}"
    body = "".join(_render_row(describe_job(folder, row, pulls), row) for row in rows)
    title = escape(f"Fleet {name}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLESHEET}</style><h1>{title}</h1><p>{escape(head)}</p>"
        f"<table><thead><tr><th>job</th><th>state</th><th>cost</th><th>what came of it</th></tr></thead>"
        f"<tbody>{body}</tbody></table></html>\n"
    )


def _render_folder(path: str) -> str:
    return f'<a href="{escape(Path(path).as_uri())}">{escape(path)}</a>' if path else ""


def _render_row(description: JSON, row: LedgerRow) -> str:
    result = row.result
    answer = escape(str(result.get("message") or result.get("text") or ""))
    diff = str(result.get("diff") or "")
    details = f"<details><summary>diff</summary><pre>{escape(diff)}</pre></details>" if diff else ""
    task = escape(row.job.goal or row.job.prompt)
    return (
        f"<tr><td><b>{escape(row.job.id)}</b><br>{escape(row.job.repository)}<br>{task}</td>"
        f'<td class="{row.state}">{row.state}</td><td>{format_cost(row.cost)}</td>'
        f"<td>{answer}<br>{_render_folder(str(description['work']))}{_render_pull(description['pull'])}{details}</td></tr>"
    )


def _render_pull(pull: JSON | None) -> str:
    """Return a pull request as HTML: its link, its branch and its problem,
    as far as it has these.
    """
    if pull is None:
        return ""
    url, name = escape(str(pull["url"])), escape(f"pull request #{pull['number']}")
    # The URL comes from the host; another scheme could run a script.
    link = f'<a href="{url}">{name}</a>' if url.startswith(("https://", "http://")) else ""
    branch = f"branch {escape(str(pull['branch']))}" if pull["commit"] else ""
    problem = (
        f'<span class="failed">{escape(str(pull["problem"]))}</span>' if pull["problem"] else ""
    )
    return "".join(f"<br>{each}" for each in (link, branch, problem) if each)
