"""The measurements, one function a row of the design's table, each over all subjects in turn."""

import sys
from collections.abc import Callable
from contextlib import ExitStack

from bench import (
    economy,
    editors,
    fleet,
    language_task,
    languages,
    large,
    library,
    many,
    page,
    requests,
    sandboxes,
    script,
    serving,
    snapshots,
    subject,
    tools,
    watching,
    worktrees,
)
from bench.figures import Bench
from bench.measure import Failed, imported, run
from bench.screen import screen
from bench.server import Scenario, Server

STEPS = 50
DELTAS = 20_000
# The session of step 1,000 has that many and a few more.
LONG = requests.LATE_STEPS.stop + 4
LONG_DEADLINE = 3600.0

ANSWER = Scenario("answer")
ONE_STEP = Scenario("steps", 1)
MANY_STEPS = Scenario("steps", STEPS)
MANY_DELTAS = Scenario("deltas", DELTAS)
DRIPPING = Scenario("drip", DELTAS)
LONG_SESSION = Scenario("steps", LONG)


def version(bench: Bench) -> None:
    """Measure how long a subject takes to say its version."""
    found = bench.medians({place.subject.name: place.fill(place.subject.version) for place in bench.places})
    for place in bench.places:
        bench.put(place, "version", found[place.subject.name].wall)


def scripted_answer(bench: Bench) -> None:
    """Measure one text answer of a model that is a file."""
    path = script.write(bench.folder / "answer.jsonl")
    places = [place for place in bench.places if place.subject.scripted]
    commands = {place.subject.name: place.fill(place.subject.scripted, script=path) for place in places}
    blank = {f"{place.subject.name} blank": place.fill((sys.executable, "-c", "pass")) for place in places}
    found = bench.medians({**commands, **blank})
    for place in places:
        name = place.subject.name
        bench.put_all(place, "answer", found[name])
        bench.put(place, "answer-python", found[name].cpu / found[f"{name} blank"].cpu)
        bench.put(place, "answer-modules", imported(commands[name]))


def over_http(bench: Bench) -> None:
    """Measure one answer, steps and deltas against the model server, all of them in turn."""
    scenarios = (ANSWER, ONE_STEP, MANY_STEPS, MANY_DELTAS, DRIPPING)
    with ExitStack() as stack:
        urls = {scenario: stack.enter_context(Server(scenario)).url for scenario in scenarios}
        found = bench.medians(
            {
                f"{place.subject.name} {scenario}": place.fill(place.subject.argv, url)
                for place in bench.places
                for scenario, url in urls.items()
            }
        )
    for place in bench.places:
        answer, one, many, deltas, drip = (found[f"{place.subject.name} {scenario}"] for scenario in scenarios)
        bench.put_all(place, "http", answer)
        bench.put(place, "step", (many.wall - one.wall) / (STEPS - 1))
        bench.put(place, "step-cpu", (many.cpu - one.cpu) / (STEPS - 1))
        bench.put(place, "deltas", deltas.wall - answer.wall)
        bench.put(place, "deltas-cpu", deltas.cpu - answer.cpu)
        bench.put(place, "deltas-memory", deltas.memory)
        bench.put(place, "drip", drip.wall - answer.wall)
        bench.put(place, "drip-cpu", drip.cpu - answer.cpu)


def steps_of_pi(bench: Bench) -> None:
    """Measure the CPU of a step against one of pi, in turn, where that is installed."""
    pi = subject.pi()
    if pi is None:
        return
    ours, theirs = bench.places[0], subject.place(pi, bench.folder)
    with Server(ONE_STEP) as one, Server(MANY_STEPS) as many:
        found = bench.medians(
            {
                f"{place.subject.name} {name}": place.fill(place.subject.argv, server.url)
                for place in (ours, theirs)
                for name, server in (("one", one), ("many", many))
            }
        )
    step, other = (
        found[f"{place.subject.name} many"].cpu - found[f"{place.subject.name} one"].cpu for place in (ours, theirs)
    )
    bench.put(ours, "step-cpu-pi", step / other)


def request_bodies(bench: Bench) -> None:
    """Look at the requests of one session: their overhead, and whether each continues the one before."""
    for place in bench.places:
        with Server(MANY_STEPS, keep_bodies=True) as server:
            run(place.fill(place.subject.argv, server.url))
            seen = server.requests()
        bench.put(place, "overhead", requests.overhead(seen[0]) if seen else None)
        bench.put(place, "prefix", requests.continued(seen))


def late_step(bench: Bench) -> None:
    """Measure step 1,000 against step 10 of one session."""
    for place in bench.places:
        with Server(LONG_SESSION) as server:
            run(place.fill(place.subject.argv, server.url), LONG_DEADLINE)
            bench.put(place, "late-step", requests.late_to_early(server.requests()))


def streams(bench: Bench) -> None:
    """Measure the event streams; what these need is loaded last: the kernel counts what we hold into others' peaks."""
    from bench.streams import streams as measured

    measured(bench)


def rendering(bench: Bench) -> None:
    """Measure drawing; what it needs is loaded last, as above."""
    from bench.rendering import rendering as measured

    measured(bench)


def mcp_servers(bench: Bench) -> None:
    """Measure MCP servers; what these need is loaded last, as above."""
    from bench.mcp_servers import mcp_servers as measured

    measured(bench)


def adapters(bench: Bench) -> None:
    """Measure the adapters; what these need is loaded last, as above."""
    from bench.adapters import adapters as measured

    measured(bench)


def adapter_answers(bench: Bench) -> None:
    """Measure an answer by each protocol; what this needs is loaded last, as above."""
    from bench.adapters import answers

    answers(bench)


def extensions(bench: Bench) -> None:
    """Measure extensions; what these need is loaded last, as above."""
    from bench.extensions import extensions as measured

    measured(bench)


MEASUREMENTS: dict[Callable[[Bench], None], tuple[str, ...]] = {
    version: ("version",),
    scripted_answer: ("answer", "answer-cpu", "answer-memory", "answer-python", "answer-modules"),
    over_http: (
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
    steps_of_pi: ("step-cpu-pi",),
    request_bodies: ("overhead", "prefix"),
    late_step: ("late-step",),
    economy.economy: (
        *(f"economy-{name}{more}" for name in economy.TRAJECTORIES for more in ("", "-requests", "-new")),
        "economy-long-billed",
    ),
    adapters: tuple(
        f"adapter-{name}{more}"
        for name in ("chat", "responses", "anthropic", "google", "interactions", "bedrock")
        for more in ("", "-import", "-memory")
    ),
    adapter_answers: tuple(
        f"adapter-{name}-answer" for name in ("responses", "anthropic", "google", "interactions", "bedrock")
    ),
    economy.facts: ("facts",),
    tools.permission: ("permission",),
    sandboxes.sandboxes: ("sandbox", "sandbox-start", "sandbox-landlock", "sandbox-landlock-start"),
    tools.edit: ("edit-large",),
    languages.languages: tuple(f"edit-{name}" for name in languages.SUBJECTS),
    languages.languages_idle: ("languages-idle",),
    language_task.language_task: tuple(
        f"task-{name}{more}" for name in ("servers", "no-servers") for more in ("", "-requests")
    ),
    watching.formatted: ("edit-formatted", "edit-formatted-first"),
    watching.watched: ("watch-large-cpu", "watch-large-stall", "watch-idle"),
    tools.search: ("grep-large", "glob-large"),
    tools.shell: ("bash-memory",),
    large.sessions: ("long-show", "long-export", "long-fork", "long-step"),
    serving.serve: ("serve-ready", "serve-list", "serve-idle-memory", "serve-idle-cpu"),
    editors.editor: ("acp-first-update", "acp-first-text"),
    serving.fifty: ("fifty", "fifty-growth"),
    snapshots.snapshots: ("snapshot-first", "snapshot-next", "snapshot-step", "snapshot-idle"),
    worktrees.worktrees: ("worktree", "worktree-sparse", "status-thousand"),
    many.many: ("twenty-server-cpu", "twenty-server-memory", "twenty-programs-cpu", "twenty-programs-memory"),
    fleet.fleet: ("fleet-xargs", "fleet-job"),
    streams: ("stream-latency", "stream-clients", "stream-clients-cpu", "stream-kept", "stream-memory"),
    mcp_servers: ("mcp-ten", "mcp-ten-cpu", "mcp-ten-memory", "mcp-call", "mcp-first"),
    extensions: (
        *("extension-known", "extension-known-memory", "extension-ten"),
        *("extension-call", "extension-events"),
    ),
    library.library: ("library-import", "library-names", "library-turn"),
    page.first_load: ("web-first-load",),
    page.tasks: tuple(f"web-{name}" for name in ("open", "older", "scroll", "rewrite", "stream", "frame", "memory")),
    page.compare: (
        *("web-paint", "web-paint-reference", "web-paint-share"),
        *("web-cold-open", "web-cold-open-reference", "web-cold-scroll", "web-cold-scroll-reference"),
    ),
    rendering: ("render-messages", "render-live", "render-live-slow"),
    screen: (
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


def measure(bench: Bench, wanted: frozenset[str]) -> list[str]:
    """Do every measurement that gives a wanted figure; say on stderr what it is at. Gives what failed, in words."""
    failures: list[str] = []
    for measurement, budgets in MEASUREMENTS.items():
        names = ", ".join(name for name in budgets if name in wanted)
        if not names:
            continue
        print(f"measuring {names} ...", file=sys.stderr, flush=True)
        try:
            measurement(bench)
        except (Failed, OSError) as error:
            failures.append(f"{names}: {error}")
    return failures
