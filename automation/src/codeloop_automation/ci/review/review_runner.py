"""Reviews a pull request: the agent reports bugs, which are reproduced without it,
and then posted.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop_automation.bounds import CI_COMMENT, CI_FINDINGS, CI_PROOF_TIME
from codeloop_automation.ci.agent_program import AgentResult, RecordedCall
from codeloop_automation.ci.event import CiEvent
from codeloop_automation.ci.event_thread import describe_late_texts, read_event_thread
from codeloop_automation.ci.hosts.host import HostProblem, LineComment, PullRequest, Thread
from codeloop_automation.ci.inert_text import make_code_span, make_inert_markdown
from codeloop_automation.ci.job import CiJob, CiOutcome, describe_run, export_session
from codeloop_automation.ci.job_prompts import quote_thread, read_prompt
from codeloop_automation.ci.output_files import write_output
from codeloop_automation.ci.review.findings import (
    ANSWER_SCHEMA,
    ReviewFinding,
    Verdict,
    find_enclosing_name,
    find_proof,
    is_confirmed,
    is_on_changed_line,
    make_fingerprint,
    make_mark,
    read_findings,
    render_finding_comment,
    render_proof,
)

# The HTTP status of GitHub for comments on lines of a commit that the pull request no longer has.
_UNPROCESSABLE_STATUS = 422
_VERDICT_TEXTS: dict[Verdict, str] = {
    "unproven": "could not be reproduced",
    "unchanged": "not on a changed line",
    "repeated": "posted before",
    "surplus": f"beyond the {CI_FINDINGS.value} that one review posts",
}


class Candidate(Struct, frozen=True):
    """A finding, with the lines of its file and its fingerprint.
    `is_new`: the function of the finding is new.

    `verdict`: why the finding is dropped without looking for a proof; None if it needs one.
    """

    finding: ReviewFinding
    source: tuple[str, ...]
    fingerprint: str
    is_new: bool
    verdict: Verdict | None


class ProvenFinding(Struct, frozen=True):
    """A finding, the call of the agent that shows it, its fingerprint,
    and whether its function is new.

    It is confirmed once the same command, run again without the agent,
    shows it only after the change.
    """

    finding: ReviewFinding
    call: RecordedCall
    fingerprint: str
    is_new: bool


class ReviewTrees(Struct, frozen=True):
    """Trees of the checkout. `after_agent`: as the agent left it.

    `head` and `base`: after and before the change, each with the files that the agent has added,
    such as tests.
    """

    after_agent: str
    head: str
    base: str


async def run_review(job: CiJob, event: CiEvent) -> CiOutcome:
    """Review a pull request, and post the confirmed findings.
    Raises CodeloopError, such as HostProblem.
    """
    pull = await job.host.read_pull(event.number)
    head, base = await job.repository.fetch(pull.head), await job.repository.fetch(pull.base)
    if head is None or base is None:
        raise CodeloopError(f"The branch `{pull.head if head is None else pull.base}` is gone.")
    # The branch `base` may have moved on; its later commits are not part of the change.
    origin = await job.repository.find_merge_base(base, head)
    changed_lines = await job.repository.list_changed_lines(origin, head)
    if not changed_lines:
        return CiOutcome(title="nothing to review", text="", exit_code=0)
    await job.repository.check_out(head, pull.head)
    before = await job.repository.record_files(head)
    event_thread = await read_event_thread(job.host, event)
    result = await _run_agent(job, pull, event_thread.thread, origin, head)
    page = await export_session(job, result)
    if result.structured is None:
        message = (
            result.message or "The review ended without findings in the shape that was asked for."
        )
        return CiOutcome(
            title="the review did not come to its end",
            text=make_inert_markdown(message),
            exit_code=result.exit_code or 1,
            cost=result.cost,
            facts=(page,),
            is_done=False,
        )
    after = await job.repository.record_files(head)
    # Only files that the agent added: what it changed in the code would make its own findings true.
    head_tree = await job.repository.add_new_files(before, before, after)
    base_tree = await job.repository.apply_changes(head_tree, (head, origin))
    trees = ReviewTrees(after_agent=after, head=head_tree, base=base_tree)
    calls = await job.agent.list_calls(
        job.settings.work, result.session_id, job.scratch / "review.json"
    )
    candidates = await _make_candidates(
        job,
        read_findings(result.structured),
        pull,
        origin=origin,
        head=head,
        changed_lines=changed_lines,
    )
    confirmed, counts = await _confirm_findings(job, candidates, trees, calls)
    facts = (page, *describe_run(result), describe_late_texts(event_thread))
    try:
        posted_count = await _post_findings(job, replace(pull, head_sha=head), confirmed)
    except HostProblem as problem:
        if problem.status != _UNPROCESSABLE_STATUS or await job.repository.fetch(pull.head) == head:
            raise
        # Somebody has pushed to the branch during the review.
        text = _describe_outdated(head, confirmed, counts)
        title = "reviewed, while it was pushed to"
        return CiOutcome(title=title, text=text, exit_code=0, cost=result.cost, facts=facts)
    text = _describe_counts(posted_count, counts)
    return CiOutcome(title="reviewed", text=text, exit_code=0, cost=result.cost, facts=facts)


async def _make_candidates(
    job: CiJob,
    findings: Sequence[ReviewFinding],
    pull: PullRequest,
    *,
    origin: str,
    head: str,
    changed_lines: Mapping[str, frozenset[int]],
) -> list[Candidate]:
    """Return the findings as candidates, with a verdict for those that need no proof.

    `origin` and `head`: the commits before and after the change.
    """
    existing_comments = "\n".join(await job.host.list_line_comments(pull.number))
    candidates = list[Candidate]()
    for finding in findings:
        source = await job.repository.read_file_lines(head, finding.path)
        fingerprint = make_fingerprint(finding, source)
        verdict: Verdict | None = None
        if not is_on_changed_line(finding, changed_lines):
            verdict = "unchanged"
        elif make_mark(fingerprint) in existing_comments:
            verdict = "repeated"
        name = find_enclosing_name(source, finding.line)
        before = await job.repository.read_file_lines(origin, finding.path)
        is_new = not before or (bool(name) and not any(name in line for line in before))
        candidates.append(
            Candidate(
                finding=finding,
                source=tuple(source),
                fingerprint=fingerprint,
                is_new=is_new,
                verdict=verdict,
            )
        )
    return candidates


async def _run_agent(
    job: CiJob, pull: PullRequest, thread: Thread, origin: str, head: str
) -> AgentResult:
    """Run the session that looks for bugs in the change from `origin` to `head`."""
    schema = job.scratch / "findings.schema.json"
    schema.write_bytes(msgspec.json.encode(ANSWER_SCHEMA))
    diff = write_output(
        job.settings.output, "change.diff", await job.repository.make_patch(origin, head)
    )
    prompt = read_prompt(
        "review",
        number=str(pull.number or pull.head),
        host=job.host.name,
        base=pull.base,
        diff=os.path.relpath(diff, job.settings.work),
        thread=quote_thread(thread),
    )
    return await job.agent.run(
        job.settings.work, f"Review of {pull.number or pull.head}", prompt, schema
    )


async def _confirm_findings(
    job: CiJob, candidates: Sequence[Candidate], trees: ReviewTrees, calls: Sequence[RecordedCall]
) -> tuple[list[ProvenFinding], Counter[Verdict]]:
    """Return the confirmed findings in the order of the model,
    and the number of others by verdict.
    """
    counts: Counter[Verdict] = Counter()
    proven, used_proofs = list[ProvenFinding](), set[tuple[str, str]]()
    for each in candidates:
        call = find_proof(each.finding, calls, each.source) if each.verdict is None else None
        proof = (each.finding.command, each.finding.output)
        # The same output of a command proves one finding only.
        if call is None or proof in used_proofs:
            counts[each.verdict or "unproven"] += 1
        else:
            used_proofs.add(proof)
            proven.append(
                ProvenFinding(
                    finding=each.finding,
                    call=call,
                    fingerprint=each.fingerprint,
                    is_new=each.is_new,
                )
            )
    if not proven:
        return [], counts
    commands = [each.call.command for each in proven]
    head_calls = await _replay_commands(job, trees.head, commands, "head")
    base_calls = await _replay_commands(job, trees.base, commands, "base")
    await job.repository.restore_files(trees.after_agent)
    confirmed = [
        each
        for each, on_head, on_base in zip(proven, head_calls, base_calls, strict=True)
        if is_confirmed(each.finding, on_head, on_base, is_new=each.is_new)
    ]
    counts["unproven"] += len(proven) - len(confirmed)
    counts["surplus"] += max(len(confirmed) - CI_FINDINGS.value, 0)
    return confirmed[: CI_FINDINGS.value], counts


async def _replay_commands(
    job: CiJob, tree: str, commands: Sequence[str], side: str
) -> list[RecordedCall | None]:
    """Run commands again on a tree; return the call of each,
    None for one that was not carried out.
    """
    # A session whose model is a script runs them, with the same tool,
    # permission rules and sandbox as the agent.
    await job.repository.restore_files(tree)
    steps = [
        {
            "calls": [
                {
                    "name": "bash",
                    "arguments": {"command": command, "description": "Runs a proof again"},
                }
            ]
        }
        for command in commands
    ]
    script = job.scratch / f"{side}.jsonl"
    script.write_bytes(
        b"".join(msgspec.json.encode(step) + b"\n" for step in [*steps, {"text": "Done."}])
    )
    result = await job.agent.replay(
        job.settings.work, script, CI_PROOF_TIME.seconds * len(commands)
    )
    calls = await job.agent.list_calls(
        job.settings.work, result.session_id, job.scratch / f"{side}.json"
    )
    by_command = {call.command: call for call in calls}
    return [by_command.get(command) for command in commands]


async def _post_findings(job: CiJob, pull: PullRequest, confirmed: Sequence[ProvenFinding]) -> int:
    """Post the findings as comments on their lines; return the number of comments."""
    if not confirmed:
        return 0
    fingerprints = sorted(each.fingerprint for each in confirmed)
    # Made of the findings, so that a repeated call makes the same mark and finds the first review.
    review_mark = f"<!-- codeloop-review {hashlib.sha256(' '.join(fingerprints).encode()).hexdigest()[:16]} -->"
    comments = [
        LineComment(
            path=each.finding.path,
            line=each.finding.line,
            text=render_finding_comment(each.finding, each.call, each.fingerprint, review_mark),
        )
        for each in confirmed
    ]
    return await job.host.post_line_comments(
        pull, f"{review_mark}\nEach was reproduced by a run, which it shows.", comments, review_mark
    )


def _describe_outdated(
    head: str, confirmed: Sequence[ProvenFinding], counts: Counter[Verdict]
) -> str:
    """Return the findings as one text, for a pull request that has moved on from `head`."""
    # Their lines may have other numbers by now, so they are not posted as comments on lines.
    sections = [
        f"### {make_code_span(f'{each.finding.path}:{each.finding.line}')}\n\n{render_proof(each.finding, each.call)}"
        for each in confirmed
    ]
    while len(sections) > 1 and sum(map(len, sections)) > CI_COMMENT.value:
        sections.pop()
    about = f"It was about {head[:10]}, so these are on no line; the next review looks at what is there now."
    return "\n\n".join((about, _describe_counts(len(confirmed), counts), *sections))


def _describe_counts(posted_count: int, counts: Counter[Verdict]) -> str:
    """Return a sentence about the posted findings, and one about the others."""
    findings = "1 finding" if posted_count == 1 else f"{posted_count or 'No'} findings"
    dropped_findings = [
        f"{count} {_VERDICT_TEXTS[verdict]}" for verdict, count in counts.items() if count
    ]
    if not dropped_findings:
        return f"{findings} posted."
    return f"{findings} posted. Of what the model suspected, {', '.join(dropped_findings)}."
