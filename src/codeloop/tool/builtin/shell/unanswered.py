"""Notes for the model on commands that asked a person: what waited, and what to use instead."""

import re

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
    r"sudo: (?:a terminal is required|a password is required|no tty present|sorry, you must)|su: must be run": (
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
    r"|\bpass(?:word|phrase)\b.{0,60}:|\bname: \([^)\n]{1,80}\))[:>?]{0,2}"
)
_LIKELY_QUESTION = r".{0,300}[?:]"
_LIKELY_FAILED_QUESTION = r".{0,300}(?:[?:>]|\[[^\]\n]{1,20}\])"
# In the output of a command that succeeded, such as a pipe: the words of git alone.
_EDITOR_FAILED = r"(?:problem with|unable to start) (?:the )?editor\W{1,3}false"
# `read -p QUESTION` prints it to a terminal only.
_READ_COMMAND = r"(?:^|[;&|\n(]|\bdo\b|\bthen\b)\s*read\s+(?:-\w+\s+)*-\w*p\b(?!.*<)"
_LAST_CHARS = 4_000


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
    return ""
