"""The measurements of whole runs, over all subjects in turn,
and the table of all measurements with their budgets.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack

from bench import (
    acp,
    adapters,
    concurrent_sessions,
    extensions,
    fleet,
    formatting,
    interrupts,
    language_servers,
    language_task,
    library,
    long_session,
    mcp_servers,
    permission,
    prefix_cache,
    project_facts,
    ratios,
    recorded_requests,
    rendering,
    replay_script,
    request_cost,
    sandboxes,
    server_process,
    snapshots,
    streams,
    subjects,
    terminal_ui,
    tools,
    tree_watch,
    web_page,
    worktrees,
)
from bench.bench_run import BenchRun
from bench.budgets import COUNT_SUBJECTS, RATIO_SUBJECTS
from bench.process_runner import MeasurementFailed, count_imports, run_command
from bench.scenario_server import Scenario, ScenarioServer

STEP_COUNT = 50
DELTA_COUNT = 20_000
# A few more steps than those that are compared.
LATE_STEP_COUNT = recorded_requests.LATE_STEPS.stop + 4
LATE_STEP_TIMEOUT_SECONDS = 3600.0

ANSWER = Scenario("answer")
ONE_STEP = Scenario("steps", 1)
MANY_STEPS = Scenario("steps", STEP_COUNT)
MANY_DELTAS = Scenario("deltas", DELTA_COUNT)
DRIPPED_DELTAS = Scenario("drip", DELTA_COUNT)
THOUSAND_STEPS = Scenario("steps", LATE_STEP_COUNT)


def measure_version(bench: BenchRun) -> None:
    """Measure how long a subject takes to print its version."""
    commands = {each.subject.name: each.fill(each.subject.version) for each in bench.installations}
    medians = bench.measure_medians(commands)
    for installation in bench.installations:
        bench.put(installation, "version", medians[installation.subject.name].wall)


def measure_scripted_answer(bench: BenchRun) -> None:
    """Measure one text answer of a model that is a file."""
    path = replay_script.write_replay_script(bench.folder / "answer.jsonl")
    commands = {
        each.subject.name: each.fill(each.subject.scripted, script=path)
        for each in bench.scriptable
    }
    blank = {
        f"{each.subject.name} blank": each.fill((sys.executable, "-c", "pass"))
        for each in bench.scriptable
    }
    medians = bench.measure_medians({**commands, **blank})
    for installation in bench.scriptable:
        name = installation.subject.name
        bench.put_sample(installation, "answer", medians[name])
        bench.put(installation, "answer-python", medians[name].cpu / medians[f"{name} blank"].cpu)
        bench.put(installation, "answer-modules", count_imports(commands[name]))


def measure_http(bench: BenchRun) -> None:
    """Measure one answer, steps and deltas against the model server, all of them in turn."""
    scenarios = (ANSWER, ONE_STEP, MANY_STEPS, MANY_DELTAS, DRIPPED_DELTAS)
    with ExitStack() as stack:
        urls = {
            scenario: stack.enter_context(ScenarioServer(scenario)).url for scenario in scenarios
        }
        medians = bench.measure_medians(
            {
                f"{each.subject.name} {scenario}": each.fill(each.subject.argv, url)
                for each in bench.installations
                for scenario, url in urls.items()
            }
        )
    for installation in bench.installations:
        # A difference of two runs leaves out the start, which is measured by itself.
        answer, one, many, deltas, drip = (
            medians[f"{installation.subject.name} {scenario}"] for scenario in scenarios
        )
        bench.put_sample(installation, "http", answer)
        bench.put(installation, "step", (many.wall - one.wall) / (STEP_COUNT - 1))
        bench.put(installation, "step-cpu", (many.cpu - one.cpu) / (STEP_COUNT - 1))
        bench.put(installation, "deltas", deltas.wall - answer.wall)
        bench.put(installation, "deltas-cpu", deltas.cpu - answer.cpu)
        bench.put(installation, "deltas-memory", deltas.memory)
        bench.put(installation, "drip", drip.wall - answer.wall)
        bench.put(installation, "drip-cpu", drip.cpu - answer.cpu)


def compare_with_pi(bench: BenchRun) -> None:
    """Measure an answer and steps against those of pi, in turn, where pi is installed."""
    pi = subjects.find_pi()
    if pi is None:
        return
    agents = (bench.codeloop, subjects.install_subject(pi, bench.folder))
    scenarios = {"answer": ANSWER, "one": ONE_STEP, "many": MANY_STEPS}
    with ExitStack() as stack:
        urls = {
            name: stack.enter_context(ScenarioServer(scenario)).url
            for name, scenario in scenarios.items()
        }
        medians = bench.measure_medians(
            {
                f"{each.subject.name} {name}": each.fill(each.subject.argv, url)
                for each in agents
                for name, url in urls.items()
            }
        )
    ours, theirs = (
        {name: medians[f"{each.subject.name} {name}"] for name in scenarios} for each in agents
    )
    bench.put_own("answer-cpu-pi", ours["answer"].cpu / theirs["answer"].cpu)
    bench.put_own(
        "step-cpu-pi",
        (ours["many"].cpu - ours["one"].cpu) / (theirs["many"].cpu - theirs["one"].cpu),
    )
    bench.put_own(
        "steps-cpu-pi",
        (ours["many"].cpu - ours["answer"].cpu) / (theirs["many"].cpu - theirs["answer"].cpu),
    )
    bench.put_own(
        "steps-pi",
        (ours["many"].wall - ours["answer"].wall) / (theirs["many"].wall - theirs["answer"].wall),
    )


def measure_request_bodies(bench: BenchRun) -> None:
    """Measure the overhead of a session's requests, and whether each continues the one before."""
    for installation in bench.installations:
        with ScenarioServer(MANY_STEPS, keep_bodies=True) as server:
            run_command(installation.fill(installation.subject.argv, server.url))
            requests = server.read_requests()
        overhead = recorded_requests.measure_overhead(requests[0]) if requests else None
        bench.put(installation, "overhead", overhead)
        bench.put(installation, "prefix", recorded_requests.compute_prefix_share(requests))


def measure_late_step(bench: BenchRun) -> None:
    """Measure step 1,000 against step 10 of one session."""
    for installation in bench.installations:
        with ScenarioServer(THOUSAND_STEPS) as server:
            run_command(
                installation.fill(installation.subject.argv, server.url), LATE_STEP_TIMEOUT_SECONDS
            )
            bench.put(
                installation,
                "late-step",
                recorded_requests.compare_late_step(server.read_requests()),
            )


MEASUREMENTS: dict[Callable[[BenchRun], None], tuple[str, ...]] = {
    ratios.measure_ratios: tuple(f"ratio-{name}" for name in RATIO_SUBJECTS),
    ratios.count_ratios: tuple(f"count-{name}" for name in COUNT_SUBJECTS),
    measure_version: ("version",),
    measure_scripted_answer: (
        "answer",
        "answer-cpu",
        "answer-memory",
        "answer-python",
        "answer-modules",
    ),
    measure_http: (
        "http",
        "http-cpu",
        "http-memory",
        "step",
        "step-cpu",
        "deltas",
        "deltas-cpu",
        "deltas-memory",
        "drip",
        "drip-cpu",
    ),
    compare_with_pi: ("answer-cpu-pi", "step-cpu-pi", "steps-cpu-pi", "steps-pi"),
    measure_request_bodies: ("overhead", "prefix"),
    measure_late_step: ("late-step",),
    request_cost.measure_request_cost: (
        *(
            f"economy-{name}{more}"
            for name in request_cost.TRAJECTORY_NAMES
            for more in ("", "-requests", "-new")
        ),
        "economy-long-billed",
    ),
    prefix_cache.measure_prefix_cache: ("prefix-requests", "prefix-resent", "prefix-ours"),
    adapters.measure_adapters: tuple(
        f"adapter-{name}{more}"
        for name in ("chat", "responses", "anthropic", "google", "interactions", "bedrock")
        for more in ("", "-import", "-memory")
    ),
    adapters.measure_adapter_answers: tuple(
        f"adapter-{name}-answer"
        for name in ("responses", "anthropic", "google", "interactions", "bedrock")
    ),
    project_facts.measure_project_facts: ("facts",),
    permission.measure_permission: ("permission",),
    sandboxes.measure_sandboxes: (
        "sandbox",
        "sandbox-start",
        "sandbox-landlock",
        "sandbox-landlock-start",
    ),
    tools.measure_edit: ("edit-large",),
    language_servers.measure_language_edits: tuple(
        f"edit-{name}" for name in language_servers.SERVER_CASES
    ),
    language_servers.measure_idle_language_servers: ("languages-idle",),
    language_task.measure_language_task: tuple(
        f"task-{name}{more}" for name in ("servers", "no-servers") for more in ("", "-requests")
    ),
    formatting.measure_formatted_edits: ("edit-formatted", "edit-formatted-first"),
    tree_watch.measure_tree_watch: ("watch-large-cpu", "watch-large-stall", "watch-idle"),
    tools.measure_search: ("grep-large", "glob-large"),
    tools.measure_shell: ("bash-memory",),
    long_session.measure_long_session: ("long-show", "long-export", "long-fork", "long-step"),
    server_process.measure_server: (
        "serve-ready",
        "serve-list",
        "serve-idle-memory",
        "serve-idle-cpu",
    ),
    acp.measure_acp: ("acp-first-update", "acp-first-text"),
    interrupts.measure_interrupts: ("interrupt", "interrupt-note"),
    server_process.measure_fifty_sessions: ("fifty", "fifty-growth"),
    snapshots.measure_snapshots: (
        "snapshot-first",
        "snapshot-next",
        "snapshot-step",
        "snapshot-idle",
    ),
    worktrees.measure_worktrees: ("worktree", "worktree-sparse", "status-thousand"),
    concurrent_sessions.measure_concurrent_sessions: (
        "twenty-server-cpu",
        "twenty-server-memory",
        "twenty-programs-cpu",
        "twenty-programs-memory",
    ),
    fleet.measure_fleet: ("fleet-xargs", "fleet-job"),
    streams.measure_streams: (
        "stream-latency",
        "stream-clients",
        "stream-clients-cpu",
        "stream-kept",
        "stream-memory",
    ),
    mcp_servers.measure_mcp_servers: (
        "mcp-ten",
        "mcp-ten-cpu",
        "mcp-ten-memory",
        "mcp-call",
        "mcp-first",
    ),
    extensions.measure_extensions: (
        *("extension-known", "extension-known-memory", "extension-ten"),
        *("extension-call", "extension-events"),
    ),
    library.measure_library: ("library-import", "library-names", "library-turn"),
    web_page.measure_first_load: ("web-first-load",),
    web_page.measure_page_tasks: tuple(
        f"web-{name}"
        for name in ("open", "older", "scroll", "rewrite", "stream", "frame", "memory")
    ),
    web_page.compare_web_apps: (
        *("web-paint", "web-paint-reference", "web-paint-share"),
        *(
            "web-cold-open",
            "web-cold-open-reference",
            "web-cold-scroll",
            "web-cold-scroll-reference",
        ),
    ),
    rendering.measure_rendering: ("render-messages", "render-live", "render-live-slow"),
    terminal_ui.measure_terminal_ui: (
        "tui-paint",
        "tui-memory",
        "tui-thousand-memory",
        "tui-long",
        "tui-key",
        "tui-key-slow",
        "tui-stream",
        "tui-idle",
    ),
}


def run_measurements(bench: BenchRun, wanted: frozenset[str]) -> list[str]:
    """Do every measurement of a wanted budget, and print its name to stderr first.
    Return a line for each failure.
    """
    failures: list[str] = []
    for measurement, budgets in MEASUREMENTS.items():
        names = ", ".join(name for name in budgets if name in wanted)
        if not names:
            continue
        print(f"measuring {names} ...", file=sys.stderr, flush=True)
        try:
            measurement(bench)
        except (MeasurementFailed, OSError) as error:
            # The other measurements are still of use: a table without one row is better than none.
            failures.append(f"{names}: {error}")
    return failures
