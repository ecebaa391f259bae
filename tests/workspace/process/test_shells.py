import asyncio
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from codeloop.kit.processes import list_processes
from codeloop.schema.limits import SHELL_FILE, SHELL_GRACE, SHELL_INTERRUPT, SHELL_REPORT
from codeloop.schema.wire import replace
from codeloop.workspace.process import running_command as commands
from codeloop.workspace.process import shells as shells_module
from codeloop.workspace.process.running_command import find_shell
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.launcher.descendants import MARK_VARIABLE
from codeloop.workspace.tool_bounds import ToolBounds

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "GIVEN": "given"}


async def run(
    shells: Shells,
    place: ShellContext,
    text: str,
    timeout: float = 60,
    directory: Path | None = None,
) -> CommandResult:
    return await shells.run(place, ShellCommand(text, timeout, directory), lambda _: None)


async def run_out_of_time(shells: Shells, place: ShellContext, text: str) -> CommandResult:
    """Run a command that makes the file `begun` to its timeout: a longer one if
    it had not begun by then.
    """
    for timeout in (1, 5, 25):
        outcome = await run(shells, place, text, timeout=timeout)
        if (place.directory / "begun").exists():
            break
    return outcome


def descriptors() -> int:
    folder = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")
    return sum(1 for _ in folder.iterdir())


def alive(pid: int) -> bool:
    return any(row.pid == pid for row in list_processes())


async def test_output_and_errors_come_together_in_their_order_with_the_code(
    shells: Shells, place: ShellContext
) -> None:
    outcome = await run(shells, place, "echo one; echo two >&2; echo three; exit 3")
    assert (outcome.output, outcome.code, outcome.is_cut) == ("one\ntwo\nthree\n", 3, False)


async def test_a_session_keeps_its_directory_and_its_exports(
    shells: Shells, place: ShellContext
) -> None:
    await run(
        shells,
        place,
        "mkdir -p 'a b'; cd 'a b'; export VALUE=$'x \"y\" $HOME\\n\\'z\\''; unset GIVEN; OWN=1; exit 7",
    )
    outcome = await run(
        shells,
        place,
        'pwd; printf "%s|" "$VALUE" "${GIVEN-none}" "${OWN-none}"; cd - >/dev/null; pwd',
    )
    assert (
        outcome.output == f"{place.directory}/a b\nx \"y\" $HOME\n'z'|none|none|{place.directory}\n"
    )


async def test_what_a_command_leaves_in_place_of_its_exports_is_never_run(
    shells: Shells, place: ShellContext
) -> None:
    forged = (
        """printf '%s\\0touch planted; declare -x A="1"\\ntouch planted\\n"""
        """declare -x B="$(touch planted)"\\n\\0' """
    )
    await run(shells, place, f'{forged} "$PWD" >&10; trap - EXIT')
    outcome = await run(shells, place, 'printf "%s|" "$B" "${A-none}"')
    assert not (place.directory / "planted").exists()
    assert outcome.output == "|none|"


async def test_no_program_writes_in_place_of_the_shell_what_it_exports(
    shells: Shells, place: ShellContext
) -> None:
    forge = (
        "import os\nfor fd in range(3, 200):\n try: os.write(fd, b'/\\0declare -x FORGED=\"1\"\\n\\0')\n"
        " except OSError: pass\n"
    )
    (place.directory / "forge.py").write_text(forge)
    await run(
        shells,
        place,
        "export A=1; python3 forge.py; sh -c 'python3 forge.py'; python3 forge.py & wait; cd /usr",
    )
    assert (await run(shells, place, "echo $A${FORGED-none}; pwd")).output == "1none\n/usr\n"
    await run(shells, place, "main() { cd /etc; export B=2; exit 1; }; main")
    assert (await run(shells, place, "echo $B; pwd")).output == "2\n/etc\n"


async def test_what_changes_how_a_line_is_read_is_not_kept(
    shells: Shells, place: ShellContext
) -> None:
    (place.directory / "sub").mkdir()
    await run(
        shells,
        place,
        "export CDPATH=/ GLOBIGNORE=* BASH_ENV=$PWD/x PS4=a; echo touch planted > x; f() { :; }; export -f f",
    )
    outcome = await run(
        shells, place, "cd usr 2>/dev/null || echo *; echo $BASH_ENV$GLOBIGNORE; type f 2>/dev/null"
    )
    assert outcome.output == "sub x\n\n"


async def test_values_of_any_bytes_are_kept_in_any_shell(
    shells: Shells, place: ShellContext
) -> None:
    await run(shells, place, r"""export A=$'\377 \\ \n`y"z' B="it's"; declare -ix D=2""")
    outcome = await run(shells, place, 'printf "%s" "$A" | od -An -tx1; echo "$B$D"')
    assert outcome.output == " ff 20 5c 20 0a 60 79 22 7a\nit's2\n"


async def test_sessions_do_not_share_their_state(shells: Shells, place: ShellContext) -> None:
    other = ShellContext("ses_2", place.directory, place.environment, place.scratch)
    await run(shells, place, "cd /; export A=1")
    assert (await run(shells, other, "pwd; echo ${A-none}")).output == f"{place.directory}\nnone\n"


async def test_reset_forgets_directory_and_exports(shells: Shells, place: ShellContext) -> None:
    await run(shells, place, "cd /; export A=1; unset GIVEN")
    shells.reset(place.session)
    assert (
        await run(shells, place, "pwd; echo ${A-none} $GIVEN")
    ).output == f"{place.directory}\nnone given\n"


async def test_a_directory_for_one_call_is_not_kept_but_its_exports_are(
    shells: Shells, place: ShellContext
) -> None:
    assert (await run(shells, place, "export A=1; pwd", directory=Path("/"))).output == "/\n"
    assert (
        await run(shells, place, "pwd; echo $A $PWD")
    ).output == f"{place.directory}\n1 {place.directory}\n"


async def test_a_directory_that_is_gone_falls_back_to_the_projects(
    shells: Shells, place: ShellContext
) -> None:
    await run(shells, place, "mkdir gone; cd gone; rmdir ../gone")
    assert (await run(shells, place, "pwd")).output == f"{place.directory}\n"


async def test_the_state_survives_a_shell_that_was_killed(
    shells: Shells, place: ShellContext
) -> None:
    await run(shells, place, "cd /; export A=1")
    killed = await run(shells, place, "cd /tmp; kill -9 $$")
    assert (killed.code, killed.signal) == (None, "SIGKILL")
    assert (await run(shells, place, "pwd; echo $A")).output == "/\n1\n"


async def test_a_syntax_error_is_reported_in_the_commands_own_words(
    shells: Shells, place: ShellContext
) -> None:
    outcome = await run(shells, place, "true\necho )")
    assert outcome.code == 2
    assert "line 2" in outcome.output
    assert MARK_VARIABLE not in outcome.output


async def test_a_command_longer_than_the_system_allows_runs(
    shells: Shells, place: ShellContext
) -> None:
    outcome = await run(shells, place, f"echo {'x' * 300_000} | wc -c; echo $0 $#")
    assert outcome.output.split() == ["300001", "bash", "0"]
    assert list(place.scratch.iterdir()) == []


async def test_the_child_gets_the_given_environment_and_not_ours(
    shells: Shells, place: ShellContext
) -> None:
    os.environ["CODELOOP_TEST_KEY"] = "secret"
    try:
        outcome = await run(shells, place, "env")
    finally:
        del os.environ["CODELOOP_TEST_KEY"]
    assert "GIVEN=given" in outcome.output
    assert "secret" not in outcome.output


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat; read x; echo end", "end\n"),
        ("printf 'a\\0b\\377c'", "a\ufffdb\ufffdc"),
        ("printf %s no-newline", "no-newline"),
        ("python3 -c 'import sys; print(sys.stdin.isatty())' 2>/dev/null || echo False", "False\n"),
        (": nothing", ""),
    ],
)
async def test_odd_input_and_output(
    shells: Shells, place: ShellContext, command: str, output: str
) -> None:
    assert (await run(shells, place, command)).output == output


@pytest.mark.parametrize(
    "command",
    [
        "sleep 900 & echo $!",
        "setsid sleep 900 & sleep 0.05; echo $!",
        "(setsid sh -c 'echo $$; > begun; exec sleep 900 >/dev/null 2>&1' &); until [ -e begun ]; do sleep 0.01; done",
        "trap '' TERM; (trap '' TERM; exec sleep 900) & echo $!",
        "sh -c 'sleep 900 & echo $!' ; exit 0",
    ],
)
async def test_what_a_command_leaves_running_is_ended_and_does_not_hold_it(
    shells: Shells, place: ShellContext, command: str
) -> None:
    outcome = await run(shells, place, command)
    assert outcome.duration < 60, "all of them go on for longer"
    assert outcome.leftover_processes >= 1
    assert not alive(int(outcome.output))


async def test_a_short_background_job_may_end_by_itself(
    shells: Shells, place: ShellContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "SHELL_GRACE", replace(SHELL_GRACE, value=20_000))
    outcome = await run(shells, place, "(sleep 0.03; echo late) &")
    assert (outcome.output, outcome.leftover_processes) == ("late\n", 0)


async def test_a_timeout_ends_the_whole_tree_and_keeps_the_output(
    shells: Shells, place: ShellContext
) -> None:
    outcome = await run_out_of_time(
        shells, place, "echo $$; setsid sh -c 'echo $$; > begun; sleep 900' & sleep 900"
    )
    assert (outcome.timed_out, outcome.code) == (True, None)
    assert len(outcome.output.split()) == 2
    assert not any(alive(int(pid)) for pid in outcome.output.split())


HANG = """import time
def wait_for_answer():
    open("begun", "w").close()
    time.sleep(900)
wait_for_answer()
"""


@pytest.mark.parametrize(
    "line", ["python3 hang.py", "cd . && python3 hang.py 2>&1 | tail -5", "exec python3 hang.py"]
)
async def test_a_timeout_shows_where_a_program_hangs(
    shells: Shells, place: ShellContext, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shells_module, "SHELL_INTERRUPT", replace(SHELL_INTERRUPT, value=60_000))
    (place.directory / "hang.py").write_text(HANG)
    outcome = await run_out_of_time(shells, place, line)
    assert (outcome.timed_out, outcome.code) == (True, None)
    assert "in wait_for_answer" in outcome.output
    assert "KeyboardInterrupt" in outcome.output


async def test_nothing_of_a_line_runs_after_its_timeout(
    shells: Shells, place: ShellContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shells_module, "SHELL_INTERRUPT", replace(SHELL_INTERRUPT, value=60_000))
    sleep = 'open("begun", "w").close(); time.sleep(900)'
    caught = f"python3 -c 'import time\ntry: {sleep}\nexcept KeyboardInterrupt: print(1)'"
    outcome = await run_out_of_time(
        shells, place, f"{caught}; touch next; ({caught}; :); touch last"
    )
    assert outcome.output == "1\n"
    assert not (place.directory / "next").exists()


async def test_a_program_that_ignores_the_interrupt_is_killed_soon(
    shells: Shells, place: ShellContext
) -> None:
    outcome = await run_out_of_time(
        shells, place, "trap '' INT; echo $$; > begun; sleep 900; echo no"
    )
    assert outcome.duration < 60
    assert not alive(int(outcome.output))


async def test_a_shell_that_ignores_term_is_killed(shells: Shells, place: ShellContext) -> None:
    outcome = await run_out_of_time(
        shells, place, "trap '' TERM; echo $$; > begun; while :; do sleep 900; done"
    )
    assert outcome.timed_out
    assert not alive(int(outcome.output))


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelling_ends_the_whole_tree_first(
    shells: Shells, place: ShellContext, times: int
) -> None:
    heard: list[str] = []
    command = ShellCommand("echo $$; setsid sh -c 'echo $$; sleep 900' & sleep 900", 60)
    task = asyncio.create_task(shells.run(place, command, heard.append))
    while not heard or heard[-1].count("\n") < 2:
        await asyncio.sleep(0.01)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.005)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(alive(int(pid)) for pid in heard[-1].split())


async def test_output_is_shown_while_it_comes_and_throttled(
    shells: Shells, place: ShellContext
) -> None:
    heard: list[tuple[float, str]] = []

    def hear(text: str) -> None:
        heard.append((time.monotonic(), text))
        if len(heard) == 3:
            (place.directory / "heard").touch()

    script = "i=0; until [ -e heard ]; do echo $((i += 1)); sleep 0.03; done"
    outcome = await shells.run(place, ShellCommand(script, 60), hear)
    assert not outcome.timed_out
    assert heard[0][1].startswith("1\n")
    assert all(
        later - earlier > SHELL_REPORT.seconds * 0.9 for (earlier, _), (later, _) in pairwise(heard)
    )


@pytest.mark.slow
async def test_long_output_keeps_head_and_tail_and_a_private_file_with_the_whole(
    shells: Shells, place: ShellContext
) -> None:
    outcome = await run(shells, place, "seq 100000")
    assert outcome.is_cut
    assert outcome.output_file is not None
    assert outcome.output_file.read_text() == "".join(f"{n}\n" for n in range(1, 100001))
    assert stat.S_IMODE(outcome.output_file.stat().st_mode) == 0o600
    assert outcome.output.startswith("1\n2\n3\n")
    assert outcome.output.endswith("99999\n100000\n")
    assert outcome.output_file.name in outcome.output, "by its short name"
    assert len(outcome.output) < 31_000
    assert outcome.screen_text.startswith("...\n\n")
    assert outcome.screen_text.endswith("100000\n")
    assert len(outcome.screen_text) == 30_005


@pytest.mark.parametrize(
    "size", [29_999, 30_000, 30_001, 119_999, 120_000, 120_001, 360_001, 700_000]
)
async def test_the_file_is_whole_at_every_size(
    shells: Shells, place: ShellContext, size: int
) -> None:
    # Lines that are neither alike nor long, so that none is shortened.
    outcome = await run(shells, place, f"seq -f %099.0f 1 10000 | head -c {size}")
    whole = "".join(f"{number:099}\n" for number in range(1, 10_001))[:size]
    assert outcome.is_cut == (size > 30_000)
    if outcome.output_file is None:
        assert outcome.output == whole
    else:
        assert outcome.output_file.read_text() == whole
        head, missing, tail = re.split(
            r"\n\n\[\.\.\. (\d+) bytes left out; .*\]\n\n", outcome.output
        )
        assert whole.startswith(head)
        assert whole.endswith(tail)
        # The line end before the note does not count as left out.
        assert len(head) + int(missing) + len(tail) in {size, size - 1}


@pytest.mark.slow
async def test_an_unwritable_scratch_folder_is_said_and_nothing_is_lost_but_the_file(
    shells: Shells, place: ShellContext, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    odd = ShellContext("ses_3", place.directory, place.environment, tmp_path / "file" / "scratch")
    outcome = await run(shells, odd, "seq 100000; exit 4")
    assert outcome.code == 4
    assert outcome.output_file is None
    assert "not saved" in outcome.output


@pytest.mark.slow
async def test_endless_output_is_ended_in_flat_memory_and_the_file_is_capped(
    shells: Shells, place: ShellContext
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for timeout in (4, 16, 64):  # a longer one where the machine was too busy for so much output
        outcome = await run(
            shells, place, "head -c 1000000000 /dev/zero | tr '\\0' '\\n'; yes", timeout=timeout
        )
        assert outcome.timed_out
        assert outcome.output_file is not None
        if outcome.output_file.stat().st_size == SHELL_FILE.value:
            break
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert outcome.output_file is not None
    assert outcome.output_file.stat().st_size == 64 * 1024 * 1024
    assert "up to its first" in outcome.output
    assert grown < 50_000


async def test_a_directory_that_does_not_exist_is_an_error_and_leaks_nothing(
    shells: Shells, place: ShellContext
) -> None:
    await run(shells, place, "true")
    before = descriptors()
    with pytest.raises(OSError, match="nowhere"):
        await run(shells, place, "true", directory=Path("/nowhere"))
    for _ in range(5):
        await run(shells, place, "true")
    assert descriptors() <= before, "fewer if something older was freed"


@pytest.mark.parametrize(
    "chosen", ["/bin/sh", "/usr/bin/zsh", "/usr/bin/fish", "", "/no/such/bash"]
)
def test_lines_run_in_bash_whatever_the_users_shell_is(chosen: str) -> None:
    assert Path(find_shell({**ENVIRONMENT, "SHELL": chosen})[0]).name == "bash"
    assert Path(find_shell({"PATH": "/nowhere", "SHELL": chosen})[0]).name == "bash"


async def test_variables_that_change_how_bash_reads_a_line_do_not_reach_it(
    shells: Shells, place: ShellContext, tmp_path: Path
) -> None:
    (tmp_path / "evil").write_text("echo evil\n")
    changing = {
        "BASH_ENV": str(tmp_path / "evil"),
        "BASH_FUNC_true%%": "() { echo function; }",
        "SHELLOPTS": "braceexpand:hashall:interactive-comments:noglob:posix",
        "BASHOPTS": "expand_aliases:extglob:nullglob",
        "CDPATH": "/:/usr",
        "GLOBIGNORE": "*",
        "POSIXLY_CORRECT": "1",
        "PS4": "$(echo evil >&2)",
        "PROMPT_COMMAND": "echo evil",
    }
    there = ShellContext("ses_5", place.directory, {**ENVIRONMENT, **changing}, place.scratch)
    told = await run(
        shells, there, "true; bash -c true; echo ${!BASH_E*} $CDPATH; shopt -q extglob || echo $-"
    )
    assert "evil" not in told.output
    assert "function" not in told.output
    assert told.output.split()[-1] in {"hBc", "hBsc"}


async def test_what_earlier_commands_changed_is_known(shells: Shells, place: ShellContext) -> None:
    odd = {"ODD": "\u00e9 \x1b[1m\n'q' \"$x\" \\ `y` \x01", "PS1": "\\u$ "}
    place = ShellContext(
        place.session, place.directory, {**place.environment, **odd}, place.scratch
    )
    await run(shells, place, "cd /; ls >/dev/null; true 'a\tb'")
    assert shells.list_changed_variables(place, is_unsandboxed=False) == {}
    await run(
        shells,
        place,
        """export A=$'it\\'s\na "$B" \\\\' PATH=/x:$PATH; unset LANG; export -n TERM""",
    )
    changed = shells.list_changed_variables(place, is_unsandboxed=False)
    assert changed.pop("PATH").startswith("/x:")
    assert changed.pop("A") == 'it\'s\na "$B" \\'
    assert set(changed) <= {"LANG", "TERM"}
    await run(shells, place, "export() { builtin export \"$@\"; echo 'touch x'; }; export B=1")
    assert shells.list_changed_variables(place, is_unsandboxed=False)["B"] == "1"
    shells.reset(place.session)
    assert shells.list_changed_variables(place, is_unsandboxed=False) == {}


async def test_a_job_is_started_watched_and_ended(shells: Shells, place: ShellContext) -> None:
    job = await shells.start(place, ShellCommand("echo $$; echo up; sleep 900", 0))
    news = await job.read(30)
    pid = int(news.output.split()[0])
    assert (news.status, news.code) == ("running", None)
    assert (await job.read()).output in {"", "up\n"}
    assert await job.kill()
    assert (await job.read()).status == "killed"
    assert not alive(pid)
    assert not await job.kill()


async def test_a_job_can_be_ended_before_it_has_begun(shells: Shells, place: ShellContext) -> None:
    job = await shells.start(place, ShellCommand("sleep 900", 0))
    assert await job.kill()
    assert (await job.read()).status == "killed"
    assert not [row for row in list_processes() if _ours(row.pid, place)]


async def test_a_job_that_ends_by_itself_says_how(shells: Shells, place: ShellContext) -> None:
    job = await shells.start(place, ShellCommand("echo done; exit 5", 0))
    news = await job.read(30)
    while news.status == "running":
        news = await job.read(30)
    assert (news.status, news.code) == ("exited", 5)
    assert job.running.buffer.path is not None
    assert job.running.buffer.path.read_text() == "done\n"


async def test_a_job_starts_where_the_session_stands_and_changes_nothing_for_it(
    shells: Shells, place: ShellContext
) -> None:
    await run(shells, place, "mkdir d; cd d; export A=1")
    job = await shells.start(place, ShellCommand("pwd; echo $A; cd /; sleep 900", 0))
    assert (await job.read(30)).output.startswith(f"{place.directory}/d\n")
    assert (await run(shells, place, "pwd")).output == f"{place.directory}/d\n"


@pytest.mark.slow
async def test_too_many_jobs_are_refused(shells: Shells, place: ShellContext) -> None:
    for _ in range(16):
        await shells.start(place, ShellCommand("sleep 900", 0))
    with pytest.raises(ValueError, match="bash_output"):
        await shells.start(place, ShellCommand("sleep 900", 0))


async def test_closing_ends_jobs_and_whatever_daemons_commands_left(place: ShellContext) -> None:
    shells = Shells()
    job = await shells.start(place, ShellCommand("echo $$; sleep 900", 0))
    pid = int((await job.read(30)).output)
    hidden = "import os,sys,time\nif os.fork(): sys.exit()\nos.setsid()\nos.closerange(0, 99)\ntime.sleep(900)"
    await run(shells, place, f'"{sys.executable}" -c "{hidden}"')
    await shells.close()
    assert not alive(pid)
    assert not [row for row in list_processes() if _ours(row.pid, place)]


def _ours(pid: int, place: ShellContext) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == place.directory
    except OSError:
        return False


async def test_nothing_survives_when_we_are_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio
from pathlib import Path
from codeloop.workspace.process.shells import *
async def main():
    shells = Shells()
    place = ShellContext("ses_1", Path({str(tmp_path)!r}), {ENVIRONMENT!r}, Path({str(tmp_path)!r}))
    job = await shells.start(place, ShellCommand("echo $$; exec sleep 900", 0))
    print((await job.read(30)).output.strip(), flush=True)
    command = ShellCommand("setsid sh -c 'echo $$ > pid; exec sleep 900' & sleep 900", 60)
    await shells.run(place, command, lambda _: None)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        job = int(killed.stdout.readline())
        file = tmp_path / "pid"
        until = time.monotonic() + 60
        while not (file.exists() and file.read_text().strip()) and time.monotonic() < until:
            await asyncio.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    pids = {job, int(file.read_text())}
    until = time.monotonic() + 60
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert not any(alive(pid) for pid in pids)


async def test_a_command_that_took_long_has_a_longer_timeout_next_time(place: ShellContext) -> None:
    shells = Shells(ToolBounds(timeout_ms=100))
    line = "echo begun; until [ -e heard ]; do sleep 0.01; done"
    try:
        # Its output is heard a tenth of a second after its time began to be measured, or later.
        await shells.run(
            place, ShellCommand(line, 60), lambda _: (place.directory / "heard").touch()
        )
        assert shells.choose_timeout_ms(place, "echo short") == 100
        # Three times as long as it took.
        assert 200 <= shells.choose_timeout_ms(place, f"{line} | tail -3") < 3 * 60_000
        await run(shells, place, "sleep 9", timeout=0.2)
        assert shells.choose_timeout_ms(place, "sleep 9") >= 600, "as long as it got was too short"
    finally:
        await shells.close()
    assert Shells(ToolBounds(timeout_ms=100)).choose_timeout_ms(place, "sleep 9") >= 600, (
        "another process knows it, too"
    )
    other = replace(place, scratch=place.scratch.with_name("of another project"))
    assert Shells(ToolBounds(timeout_ms=100)).choose_timeout_ms(other, "sleep 9") == 100
