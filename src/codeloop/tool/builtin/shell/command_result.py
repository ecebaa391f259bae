"""Makes the result of a command for the model and for screens: its output,
and notes on how it ended.
"""

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from codeloop.schema.part import MODEL_NOTES_KEY, SHELL_NOTES_SEPARATOR
from codeloop.schema.wire import JSON
from codeloop.tool.files.file_access import format_path
from codeloop.tool.tool import ToolContext, ToolResult
from codeloop.workspace.process.command_result import CommandResult
from codeloop.workspace.process.shells import ShellCommand
from codeloop.workspace.sandbox.refusals import ASK_OUTSIDE

_PIPED = "pass the answer as an option (`--yes`, `-y`, `--no-input`) or pipe it in (`printf 'y\\n' | COMMAND`)"
# What a program says when it can't ask -> what to do instead. The first that matches counts.
_ADVICE = {
    r"(?i)editor.{0,40}\bfalse\b|\bfalse\W{0,3} (?:exited|failed|returned)|(?<!\w)false['\"]?: exit": (
        "It wanted an editor, which nobody could type into here. Give the text by an option (`git commit -m`, "
        "`-F FILE`, `--no-edit`), or name a program that writes it: `GIT_EDITOR=true git rebase --continue`, "
        "`GIT_SEQUENCE_EDITOR=\"sed -i 's/^pick/fixup/'\" git rebase -i`, `EDITOR=PROGRAM`."
    ),
    r"Host key verification failed": (
        "ssh asked whether to trust a host it does not know, and nobody could answer. If the user trusts it: "
        "`ssh -o StrictHostKeyChecking=accept-new`."
    ),
    r"sudo: (?:a terminal is required|a password is required|no tty present|sorry, you must)|su: must be run"
    r"|Password change has been aborted|unable to get passphrase": (
        "It asked for a password, which nobody could type here. Do without it, or ask the user to run this."
    ),
    r"could not read (?:Username|Password) for|terminal prompts disabled|Permission denied \([\w,-]*password": (
        "It asked for a user name or password, which nobody could type here. The user has to sign in "
        "(a credential helper, an SSH key, `gh auth login`)."
    ),
    r"EOFError\b|(?m:^E: .*no.* terminal)|\[[Yy]/[Nn]\]\s*Abort|ERR_USE_AFTER_CLOSE|User force closed the prompt": (
        f"It asked a question, and nobody could answer: stdin is empty. If it can, {_PIPED}."
    ),
    r"(?i)(?:not|must be run (?:from|in)|requires|without|open) an? (?:interactive )?(?:terminal|tty)\b|"
    r"/dev/tty\b.*(?:No such|Permission|open)|not a tty\b|failed tty get|Inappropriate ioctl for device": (
        "It needs a terminal and a person at it. Look for an option that makes it run without questions, or use "
        "another program."
    ),
}
# A question, as what the output ends with: surely one, and perhaps one if no line end follows it.
_QUESTION = (
    r"(?i).{0,300}(?:[\[(](?:y|yes)\b[^\]\n)]{0,40}[\])]\??"
    r"|#\?|\bpass(?:word|phrase)\b.{0,60}:|\bname: \([^)\n]{1,80}\))[:>?]{0,2}"
)
_LIKELY_QUESTION = r".{0,300}[?:]"
_LIKELY_FAILED_QUESTION = r".{0,300}(?:[?:>]|\[[^\]\n]{1,20}\])"
# In the output of a command that succeeded, such as a pipe: the words of git alone.
_EDITOR_FAILED = r"(?:problem with|unable to start) (?:the )?editor\W{1,3}false"
# `read -p QUESTION` prints it to a terminal only.
_READ_COMMAND = r"(?:^|[;&|\n(]|\bdo\b|\bthen\b)\s*read\s+(?:-\w+\s+)*-\w*p\b(?!.*<)"
# An interpreter by itself reads its program from stdin.
_BARE_INTERPRETER = (
    r"(?:\S*/)?(?:i?python[\d.]*|node|deno|bun|irb|ruby|perl|php|lua|ghci|R|julia|(?:ba|z|da|k)?sh|bc|sqlite3"
    r"|psql|mysql|mongosh|redis-cli|cat)(?:\s+-[qiu])*\s*"
)
_FOLLOWS = r"\s(?:-\w*f|--follow|-w|--watch)\b"
_LOGS = rf"\b(?:logs|get|watch|events)\b.*{_FOLLOWS}"
# Programs that show what comes until somebody ends them -> the arguments with which they do.
_ENDLESS = {
    **dict.fromkeys(("watch", "htop", "yes"), ""),
    **dict.fromkeys(("top", "tcpdump"), r"^(?!.*\s-\w*[bcn])"),
    **dict.fromkeys(("ping", "ping6"), r"^(?!.*\s-\w*[cw])"),
    "tail": r"\s(?:-\w*[fF]|--follow)",
    "less": r"\s\+F",
    **dict.fromkeys(("journalctl", "stern", "heroku", "fly", "adb"), _FOLLOWS),
    **dict.fromkeys(("docker", "podman", "kubectl", "oc", "docker-compose", "gh"), _LOGS),
    "dmesg": r"\s(?:-\w*[wW]|--follow)",
    "inotifywait": r"\s(?:-\w*m|--monitor)",
    **dict.fromkeys(("nc", "ncat"), r"\s-\w*l"),
    **dict.fromkeys(("iostat", "vmstat", "mpstat"), r"^(?!(?:.*\s\d+\b){2}).*\s\d+\s*$"),
    "sleep": r"\sinf",
}
# Commands that end only when what they read does.
_PASSES_ON = r"\s*(?:grep|cat|tee|tr|cut|jq)\b(?!.*\s(?:-\w*[mq]|--max-count|--quiet))"
_STARTERS = frozenset({"sudo", "exec", "env", "command", "nice", "time"})
_LAST_CHARS = 4_000


def shows_what_comes(command: str) -> bool:
    """Return whether a command never ends by itself, since it follows a file or a program."""
    # Separators in quotes cut a word: then the command counts as one that ends.
    last = command.replace("&&", "\n").replace(";", "\n").replace("&", "\n").strip(" ")
    pipeline = last.rpartition("\n")[2].split("|")
    # A pipe ends with its last command, which ends the others: `yes | apt install x`.
    while len(pipeline) > 1 and re.match(_PASSES_ON, pipeline[-1]):
        pipeline.pop()
    words = pipeline[-1].split()
    while words and words[0] in _STARTERS:
        del words[0]
    arguments = _ENDLESS.get(words[0].rpartition("/")[2]) if words else None
    return arguments is not None and bool(re.search(arguments, " ".join(["", *words[1:]])))


def describe_unanswered(command: str, output: str, *, is_failed: bool) -> str:
    """Return a note on a question of a command that got no answer; "": its output shows none.

    `is_failed`: it ended with another code than 0;
    most of what it says about terminals only counts then.
    """
    end = output[-_LAST_CHARS:]
    for number, (pattern, advice) in enumerate(_ADVICE.items()):
        words = pattern if is_failed else _EDITOR_FAILED if number == 0 else ""
        if words and re.search(words, end):
            return advice
    line = end.rstrip().rpartition("\n")[2].strip()
    has_line_end = end.endswith("\n")
    likely = _LIKELY_FAILED_QUESTION if is_failed else _LIKELY_QUESTION
    if line and re.fullmatch(_QUESTION if has_line_end else f"{_QUESTION}|{likely}", line):
        return (
            f"Its question `{line[-100:]}` got no answer: stdin is empty. If it is one, {_PIPED}."
        )
    if re.search(_READ_COMMAND, command):
        return "`read` got no answer: stdin is empty, and nobody can type here. Set the variable instead."
    if not output.strip() and re.fullmatch(_BARE_INTERPRETER, command.strip()):
        return (
            "It read its program from stdin, which is empty: nothing was done. "
            "Give it a file, an option such as `-c`, or a here-document."
        )
    return ""


async def format_result(
    ctx: ToolContext,
    command: ShellCommand,
    outcome: CommandResult,
    *,
    description: str | None,
    folder: Path,
    folder_notes: Sequence[str],
) -> ToolResult:
    """Return the result of a command that ran in `folder`,
    with notes on what went wrong and what to do about it.

    `folder_notes`: on the working directory, see `note_folder`.
    """
    notes: list[str] = []
    screen_notes: list[str] = []
    if outcome.timed_out:
        max_ms = ctx.workspace.bounds.max_timeout_ms
        screen_note, note = _describe_timeout(command.text, outcome, max_ms)
        screen_notes.append(screen_note)
        notes.append(note)
    if outcome.signal:
        signal_note = f"The shell was ended by {outcome.signal}."
        screen_notes.append(signal_note)
        notes.append(signal_note)
    elif outcome.code:
        # Only a failure needs it, and what it loads.
        from codeloop.tool.builtin.shell.failure_notes import explain_failure

        notes.append(f"exit code {outcome.code}{_format_signal(outcome.code)}")
        explanation, is_for_screen = await explain_failure(command.text, outcome, folder, ctx)
        notes += [explanation] if explanation else []
        screen_notes += [explanation] if is_for_screen else []
    if outcome.code is not None:
        # What nearly every command needs is not loaded for each.

        question = describe_unanswered(command.text, outcome.output, is_failed=outcome.code != 0)
        notes += [question] if question else []
    notes += folder_notes
    if outcome.leftover_processes:
        count = outcome.leftover_processes
        leftovers = (
            "1 process that it left running was"
            if count == 1
            else f"{count} processes that it left were"
        )
        screen_notes.append(f"{leftovers} ended.")
        notes.append(f"{leftovers} ended. Use run_in_background for what should keep running.")
    notes += outcome.notes
    screen_notes += map(strip_advice, outcome.notes)
    metadata = make_metadata(outcome.screen_text, description)
    metadata |= _describe_end(outcome, screen_notes)
    no_output = "(no output)" if notes else "(no output, exit code 0)"
    output, marks = append_notes(outcome.output or no_output, notes)
    return ToolResult(title=command.text, output=output, metadata=metadata | marks)


def _describe_end(outcome: CommandResult, screen_notes: list[str]) -> JSON:
    """Return the metadata that says how a command ended."""
    metadata: JSON = {
        "exit": outcome.code,
        "truncated": outcome.is_cut,
        "lines": outcome.line_count,
        "duration": round(outcome.duration * 1000),
    }
    if screen_notes:
        metadata["notes"] = screen_notes
    if outcome.signal:
        metadata["signal"] = outcome.signal
    if outcome.timed_out:
        metadata["timedOut"] = True
    if outcome.job_id:
        metadata["id"] = outcome.job_id
    if outcome.output_file is not None:
        metadata["outputPath"] = str(outcome.output_file)
    return metadata


def _describe_timeout(command: str, outcome: CommandResult, max_timeout_ms: int) -> tuple[str, str]:
    """Return notes for the screen and for the model on a command that did not
    end within its timeout.
    """
    seconds = (
        f"{outcome.duration:.0f} s"
        if outcome.duration >= 1
        else f"{outcome.duration * 1000:.0f} ms"
    )
    if outcome.job_id:
        note = f"The command did not end within {seconds}. It goes on in the background as {outcome.job_id}."
        return note, (
            f"{note} You will be told how it ends; do something else meanwhile, or wait for it with bash_output. "
            "If it hangs, end it with bash_output and `stop`."
        )
    note = f"The command did not end within {seconds}, and was ended with all its processes."
    if shows_what_comes(command):
        return note, (
            f"{note} It never ends by itself: it shows what comes. Read what there is "
            "(`tail -n 50 FILE`), or start it with run_in_background and read it with bash_output."
        )
    return note, (
        f"{note} It needs longer, or it hangs: what it printed last, such as a traceback, may say where. "
        f"Give a timeout (at most {max_timeout_ms} ms) where it only takes long."
    )


def note_folder(
    ctx: ToolContext, folder: Path, next_folder: Path, outcome: CommandResult, *, before: Path
) -> list[str]:
    """Return a note on the working directory if `cd` changed it,
    or if the command failed in an unusual one.

    `folder`: where the command ran; `before`, `next_folder`: the session's working
    directory before it and after it.
    """
    shown = next_folder if next_folder != before else folder
    name = format_path(ctx.workspace, shown)
    name = str(shown) if name in {".", ""} else name
    if next_folder != before:
        notes = [f"The working directory is now {name}."]
        if next_folder != ctx.workspace.directory:
            notes.append(
                f"That of commands: paths given to other tools, and workdir, start in {ctx.workspace.directory}."
            )
        return notes
    return [f"It ran in {name}."] if outcome.code != 0 and folder != ctx.workspace.directory else []


def _format_signal(code: int) -> str:
    """Return the signal that an exit code above 128 stands for, as ` (SIGKILL)`;
    "" for other codes.
    """
    try:
        return f" ({signal.Signals(code - 128).name})" if code > 128 else ""
    except ValueError:
        return ""


def strip_advice(note: str) -> str:
    """Return a note of the sandbox without its advice for the model."""
    return note.removesuffix(ASK_OUTSIDE).rstrip()


def append_notes(output: str, notes: list[str]) -> tuple[str, JSON]:
    """Append notes for the model to a command's output;
    return it, and metadata that marks them for screens.
    """
    if not notes:
        return output, {MODEL_NOTES_KEY: ""}
    text = "\n".join(notes)
    block = f"{SHELL_NOTES_SEPARATOR}{text}\n</shell_metadata>"
    return output.rstrip() + block, {MODEL_NOTES_KEY: block}


def make_metadata(output: str, description: str | None) -> JSON:
    """Return the metadata of a call with its output so far.
    `description`: what the model says the command does.
    """
    return {"output": output} | ({"description": description} if description else {})
