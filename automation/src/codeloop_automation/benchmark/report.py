"""The reports of `codeloop bench`: the sums for each agent and model,
and an HTML page with all runs.
"""

import html
from collections.abc import Sequence

from msgspec import Struct

from codeloop.client.formatting import format_cost
from codeloop.kit.text.terminal_text import escape_controls
from codeloop_automation.benchmark.runner import BenchRun

_STYLESHEET = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #f85149 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .8rem; text-align: left; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.bar { background: var(--line); width: 8rem; height: .6rem; display: inline-block; overflow: hidden }
.bar i { background: var(--good); height: 100%; display: block }
.good { color: var(--good) } .bad { color: var(--bad) }
pre { background: #8881; padding: .6rem; overflow-x: auto; font-size: 13px } summary { cursor: pointer }
"""


class BenchSum(Struct, frozen=True):
    """The sums over the runs of an agent with a model. `rate`: the share that passed.
    `seconds`: of a run, on average.

    `cost`: the dollars of all runs that report a cost; None: no run does. So are the tokens.
    """

    agent: str
    model: str
    runs: int
    passed: int
    rate: float
    cost: float | None
    seconds: float
    input_tokens: int | None
    output_tokens: int | None


def sum_runs(runs: Sequence[BenchRun]) -> list[BenchSum]:
    """Return the sums for each agent and model, the best rate first;
    of equal rates the cheaper (unknown is 0).
    """
    groups: dict[tuple[str, str], list[BenchRun]] = {}
    for run in runs:
        groups.setdefault((run.agent, run.model), []).append(run)
    sums = [_sum_group(agent, model, group) for (agent, model), group in groups.items()]
    return sorted(sums, key=lambda each: (-each.rate, each.cost or 0.0, each.seconds))


def _sum_group(agent: str, model: str, runs: Sequence[BenchRun]) -> BenchSum:
    passed_count = sum(run.passed for run in runs)
    costs = [run.used.cost for run in runs if run.used.cost is not None]
    return BenchSum(
        agent=agent,
        model=model,
        runs=len(runs),
        passed=passed_count,
        rate=round(passed_count / len(runs), 4),
        cost=round(sum(costs), 6) if costs else None,
        seconds=round(sum(run.seconds for run in runs) / len(runs), 2),
        input_tokens=_sum_tokens([run.used.input_tokens for run in runs]),
        output_tokens=_sum_tokens([run.used.output_tokens for run in runs]),
    )


def render_page(title: str, runs: Sequence[BenchRun]) -> str:
    """Return the page as HTML: the sums, a table of tasks and agents,
    and the details of each run.
    """
    sums = sum_runs(runs)
    columns = [(each.agent, each.model) for each in sums]
    # By task, agent and model: the runs with their numbers, which are the targets of the links.
    cells: dict[tuple[str, str, str], list[tuple[int, BenchRun]]] = {}
    for number, run in enumerate(runs):
        cells.setdefault((run.task, run.agent, run.model), []).append((number, run))
    task_heads = "".join(
        f"<th>{_escape(agent)}<br><small>{_escape(model)}</small></th>" for agent, model in columns
    )
    rows = ""
    for task in dict.fromkeys(run.task for run in runs):
        links = [
            [_render_link(*each) for each in cells.get((task, *column), [])] for column in columns
        ]
        row = "".join(f"<td>{' '.join(cell)}</td>" for cell in links)
        rows += f"<tr><th>{_escape(task)}</th>{row}</tr>"
    details = "".join(_render_details(number, run) for number, run in enumerate(runs))
    sum_heads = "<th>agent</th><th>model</th><th>passed</th><th></th><th>cost</th><th>a run</th><th>tokens in, out</th>"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLESHEET}</style><h1>{_escape(title)}</h1>'
        f"<table><tr>{sum_heads}</tr>{''.join(map(_render_sum_row, sums))}</table>"
        f"<h2>Tasks</h2><table><tr><th></th>{task_heads}</tr>{rows}</table><h2>Runs</h2>{details}</html>\n"
    )


def format_known_cost(cost: float | None) -> str:
    """Return dollars as text for a table; `-` for None."""
    return "-" if cost is None else format_cost(cost)


def _render_sum_row(each: BenchSum) -> str:
    bar = f'<span class="bar"><i style="width:{each.rate * 100:.0f}%"></i></span>'
    tokens = (
        "-" if each.input_tokens is None else f"{each.input_tokens:,}, {each.output_tokens or 0:,}"
    )
    numbers = (
        f"{each.passed} of {each.runs}",
        bar,
        format_known_cost(each.cost),
        f"{each.seconds:.1f} s",
        tokens,
    )
    cells = "".join(f'<td class="n">{number}</td>' for number in numbers)
    return f"<tr><td>{_escape(each.agent)}</td><td>{_escape(each.model)}</td>{cells}</tr>"


def _render_link(number: int, run: BenchRun) -> str:
    css_class, label = ("good", "passed") if run.passed else ("bad", "failed")
    return f'<a class="{css_class}" href="#run{number}">{label}</a>'


def _render_details(number: int, run: BenchRun) -> str:
    facts = [
        run.task,
        run.agent,
        run.model,
        f"{run.seconds:.1f} s",
        format_known_cost(run.used.cost),
    ]
    css_class, label = ("good", "passed") if run.passed else ("bad", "failed")
    line = " · ".join(_escape(fact) for fact in facts if fact)
    blocks = (
        ("What went wrong", run.error),
        ("The check", run.check),
        ("What was changed", run.diff),
    )
    inside = "".join(
        f"<h4>{title}</h4><pre>{_escape(text)}</pre>" for title, text in blocks if text.strip()
    )
    session = _escape(run.used.session_id)
    page = (
        f'<p>Session <a href="sessions/{session}.html">{session}</a></p>' if run.has_session else ""
    )
    # The link target is inside the details, so that following the link opens them.
    head = f'<summary><b class="{css_class}">{label}</b> {line}</summary>'
    return f'<details>{head}<div id="run{number}">{page}{inside}</div></details>'


def _escape(text: str) -> str:
    # Programs print colours and other control characters, which HTML does not allow.
    return html.escape(escape_controls(text))


def _sum_tokens(values: Sequence[int | None]) -> int | None:
    """Return the sum of the reported numbers; None if no run reports any."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None
