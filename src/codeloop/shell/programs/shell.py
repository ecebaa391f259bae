"""Rows of the builtins of bash, of shells, and of programs that run the
command that they are given.
"""

from codeloop.shell.builtin_checks import (
    accept_any,
    bracket_may_evaluate,
    has_callback,
    has_subscript,
    has_words,
    is_certain_bracket,
    is_certain_test,
    is_plain_cd,
    is_plain_printf,
    let_may_evaluate,
    make_option_check,
    make_pattern_check,
    may_assign_subscript,
    test_may_evaluate,
)
from codeloop.shell.program_row import Builtin, ProgramRow, Wrapper, list_by_name
from codeloop.shell.unwrappers import (
    unwrap_alias,
    unwrap_as_unknown,
    unwrap_eval,
    unwrap_parallel,
    unwrap_script_option,
    unwrap_shell,
    unwrap_shopt,
    unwrap_source,
    unwrap_trap,
    unwrap_watch,
    unwrap_xargs,
)

_TIMEOUT_OPTIONS = (
    "-f -k=- -p -s=- -v --foreground --kill-after=- --preserve-status --signal=- --verbose"
)

_ROWS = {
    ".": ProgramRow(operands="r:-", builtin=Builtin(), unwrap=unwrap_source),
    ":": ProgramRow(operands="-", builtin=Builtin(only_reads=True, is_certain=accept_any)),
    "[": ProgramRow(
        operands="-",
        is_plain=True,
        builtin=Builtin(
            only_reads=True, is_certain=is_certain_bracket, may_evaluate=bracket_may_evaluate
        ),
    ),
    "alias": ProgramRow(operands="-", builtin=Builtin(), unwrap=unwrap_alias),
    "arch": ProgramRow(reads="", runs_words="command"),
    "ash fish mksh rbash yash": ProgramRow(unwrap=unwrap_shell),
    "at batch expect machinectl newgrp screen sg ssh-agent tmux": ProgramRow(runs_words="script"),
    "bash dash sh": ProgramRow(
        operands="r:- ^",
        options="-c=-!none -o=- -O=- --rcfile=r --init-file=r",
        reads="",
        unwrap=unwrap_shell,
        is_followed=True,
        is_interpreter=True,
    ),
    """
bg break caller continue declare dirs export fg local logout readonly return set shift typeset
unalias
""": ProgramRow(operands="-", builtin=Builtin()),
    "bind compgen complete": ProgramRow(builtin=Builtin(may_evaluate=has_words)),
    "builtin": ProgramRow(operands="- ^", builtin=Builtin(), wraps=Wrapper()),
    "busybox noglob toybox": ProgramRow(operands="- ^", wraps=Wrapper()),
    """
bwrap c8 caffeinate capsh catchsegv cgexec choom chpst cpulimit cross-env daemon daemonize
dbus-launch dbus-run-session direnv distrobox dtach eatmydata envdir fakechroot faketime
firejail flatpak-spawn gdb gosu hyperfine i386 ip lldb multitime nodemon nq numactl nyc openvt
perf pgrphack pkexec please proot proxychains proxychains4 rlwrap run-parts run0 runcon
runscript schroot scl sem setarch setpriv setuidgid socat softlimit sshpass start-stop-daemon
su-exec systemd-inhibit systemd-nspawn toolbox torify torsocks tsocks uftrace uname26 unshare
valgrind watchexec wine x86_64
""": ProgramRow(runs_words="command"),
    "cd": ProgramRow(
        operands="n", is_plain=True, builtin=Builtin(only_reads=True, is_certain=is_plain_cd)
    ),
    "chroot": ProgramRow(
        operands="n",
        options="--groups=- --skip-chdir --userspec=-",
        wraps=Wrapper(operand_count=1, starts_shell=True),
    ),
    "chrt": ProgramRow(
        operands="- ^",
        options="-a -b -D=- -f -i -m -o -P=- -r -T=-",
        wraps=Wrapper(operand_count=1),
    ),
    "command": ProgramRow(
        operands="- ^",
        options="-p",
        reads="",
        builtin=Builtin(),
        wraps=Wrapper(exit_options="-v -V"),
        is_followed=True,
    ),
    "compopt disown help popd suspend": ProgramRow(builtin=Builtin()),
    "coproc": ProgramRow(operands="-", wraps=Wrapper(takes_assignments=True)),
    "doas": ProgramRow(operands="- ^", options="-C=- -n -u=-", wraps=Wrapper(exit_options="-L")),
    "echo false true": ProgramRow(
        operands="-", is_plain=True, builtin=Builtin(only_reads=True, is_certain=accept_any)
    ),
    "enable shopt": ProgramRow(operands="-", builtin=Builtin(), unwrap=unwrap_shopt),
    "entr nsenter": ProgramRow(unwrap=unwrap_as_unknown),
    "env": ProgramRow(
        operands="- ^",
        options="- -0 -C=n -i -u=- -v --chdir=n --debug --ignore-environment --null --unset=-",
        risky="-S=-",
        reads="",
        wraps=Wrapper(takes_assignments=True),
        is_followed=True,
    ),
    "eval": ProgramRow(operands="- ^", builtin=Builtin(), unwrap=unwrap_eval),
    "exec": ProgramRow(operands="- ^", options="-a=- -c -l", builtin=Builtin(), wraps=Wrapper()),
    "exit": ProgramRow(
        operands="-",
        is_plain=True,
        builtin=Builtin(only_reads=True, is_certain=make_pattern_check(r"[0-9]{1,3}")),
    ),
    "fakeroot": ProgramRow(
        operands="- ^", options="-b=- -i=- -l=- -s=- -u", wraps=Wrapper(starts_shell=True)
    ),
    "fc": ProgramRow(builtin=Builtin(may_evaluate=accept_any)),
    "flock": ProgramRow(
        operands="b:- ^",
        options="-E=- -e -F -n -o -s -w=- -x --conflict-exit-code=- --exclusive --shared --timeout=-",
        wraps=Wrapper(operand_count=1),
    ),
    "getopts read unset": ProgramRow(operands="-", builtin=Builtin(may_evaluate=has_subscript)),
    "gtimeout": ProgramRow(options=_TIMEOUT_OPTIONS, wraps=Wrapper(operand_count=1)),
    "hash": ProgramRow(operands="-", builtin=Builtin(may_evaluate=make_option_check("p"))),
    "history": ProgramRow(operands="-", options="-w=w -a=w -r=r -n=r", builtin=Builtin()),
    "ionice": ProgramRow(
        operands="- ^", options="-c=- -n=- -t --class=- --classdata=- --ignore", wraps=Wrapper()
    ),
    "jobs": ProgramRow(operands="-", builtin=Builtin(may_evaluate=make_option_check("x"))),
    "kill": ProgramRow(
        operands="-",
        builtin=Builtin(is_certain=make_pattern_check(r"-[A-Z0-9]+|-[lsn]|[A-Z]+|[0-9]+")),
    ),
    "ksh": ProgramRow(
        operands="r:- ^",
        options="-c=-!none -o=- -O=- --rcfile=r --init-file=r",
        unwrap=unwrap_shell,
    ),
    "let": ProgramRow(operands="-", builtin=Builtin(may_evaluate=let_may_evaluate)),
    "linux32 linux64": ProgramRow(operands="- ^", wraps=Wrapper(starts_shell=True)),
    "ltrace": ProgramRow(
        options="-C -c -e=- -f -i -l=- -n=- -o=- -p=- -r -S -s=- -T -t -tt -u=-", wraps=Wrapper()
    ),
    "mapfile readarray": ProgramRow(builtin=Builtin(may_evaluate=has_callback)),
    "nice": ProgramRow(
        operands="- ^",
        options="-# -n=- --adjustment=-",
        reads="",
        wraps=Wrapper(),
        is_followed=True,
    ),
    "nohup": ProgramRow(operands="- ^", wraps=Wrapper(), is_followed=True),
    "parallel": ProgramRow(unwrap=unwrap_parallel, runs_words="command"),
    "printf": ProgramRow(
        operands="-",
        is_plain=True,
        builtin=Builtin(
            only_reads=True, is_certain=is_plain_printf, may_evaluate=may_assign_subscript
        ),
    ),
    "prlimit": ProgramRow(operands="- ^", options="-p=-", wraps=Wrapper()),
    "pushd": ProgramRow(operands="n", builtin=Builtin()),
    "pwd": ProgramRow(
        operands="-",
        is_plain=True,
        builtin=Builtin(only_reads=True, is_certain=make_pattern_check(r"-[LP]")),
    ),
    "runuser su": ProgramRow(unwrap=unwrap_script_option),
    "script": ProgramRow(
        operands="w",
        options="""
-c=- --command=- -I=w -O=w -B=w -T=w -t? --log-in=w --log-out=w --log-io=w --log-timing=w -o=-
-E=- -m=-
""",
        unwrap=unwrap_script_option,
    ),
    "setsid": ProgramRow(operands="- ^", options="-c -f -w --ctty --fork --wait", wraps=Wrapper()),
    "source": ProgramRow(operands="r", builtin=Builtin(), unwrap=unwrap_source),
    "stdbuf": ProgramRow(
        operands="- ^",
        options="-e=- -i=- -o=- --error=- --input=- --output=-",
        reads="",
        wraps=Wrapper(),
        is_followed=True,
    ),
    "strace": ProgramRow(
        operands="- ^",
        options="""
-a=- -b=- -C -c -d -E=- -e=- -f -I=- -i -k -O=- -o=w -P=n -p=- -q -r -S=- -s=- -T -t -u=- -v
-X=- -x -y
""",
        risky="--output=w",
        wraps=Wrapper(),
    ),
    "sudo": ProgramRow(
        operands="- ^",
        options="""
-A -b -C=- -D=- -E -g=- -H -h=- -k -n -P -p=- -R=- -r=- -S -T=- -t=- -U=- -u=- --group=-
--user=-
""",
        wraps=Wrapper(takes_assignments=True, exit_options="-v -l -K -e"),
        is_followed=True,
    ),
    "systemd-run": ProgramRow(
        operands="- ^",
        options="""
-G -P -p=- -q -t -u=- --collect --property=- --pty --quiet --scope --unit=- --user --wait
""",
        wraps=Wrapper(),
    ),
    "taskset": ProgramRow(
        operands="- ^", options="-a -c", wraps=Wrapper(operand_count=1, exit_options="-p")
    ),
    "test": ProgramRow(
        operands="-",
        is_plain=True,
        builtin=Builtin(
            only_reads=True, is_certain=is_certain_test, may_evaluate=test_may_evaluate
        ),
    ),
    "time": ProgramRow(
        operands="- ^",
        options="-a -f=- -o=w -p -v --append --format=- --output=w --portability --verbose",
        wraps=Wrapper(takes_assignments=True),
    ),
    "timeout": ProgramRow(
        operands="- ^",
        options=_TIMEOUT_OPTIONS,
        reads="",
        wraps=Wrapper(operand_count=1),
        is_followed=True,
    ),
    "times": ProgramRow(
        operands="-", builtin=Builtin(only_reads=True, is_certain=make_pattern_check(r"(?!)"))
    ),
    "trap": ProgramRow(operands="-", builtin=Builtin(), unwrap=unwrap_trap),
    "type": ProgramRow(
        operands="-",
        builtin=Builtin(
            only_reads=True, is_certain=make_pattern_check(r"-[aptPf]+|[A-Za-z0-9_.+-]+")
        ),
    ),
    "ulimit": ProgramRow(operands="-", builtin=Builtin(is_certain=make_pattern_check(r"-a"))),
    "umask": ProgramRow(
        operands="-", builtin=Builtin(is_certain=make_pattern_check(r"-S|[0-7]{3,4}"))
    ),
    "unbuffer": ProgramRow(operands="- ^", options="-p", wraps=Wrapper()),
    "wait": ProgramRow(
        operands="-",
        builtin=Builtin(is_certain=make_pattern_check(r"[0-9]+"), may_evaluate=has_subscript),
    ),
    "watch": ProgramRow(
        operands="- ^",
        options="-b -c -d -e -g -n=- -p -t -x --color --differences --exec --interval=- --no-title",
        unwrap=unwrap_watch,
    ),
    "xargs": ProgramRow(
        operands="- ^",
        options="""
-0 -a=r -d=- -E=- -I=- -J=- -L=- -n=- -o -P=- -p -R=- -r -S=- -s=- -t -x --arg-file=r
--delimiter=- --eof? --exit --interactive --max-args=- --max-chars=- --max-lines? --max-procs=-
--no-run-if-empty --null --open-tty --replace? --verbose
""",
        risky="-i? -e? -l? --process-slot-var=-",
        reads="",
        unwrap=unwrap_xargs,
        is_followed=True,
    ),
    "xvfb-run": ProgramRow(
        operands="- ^",
        options="-a -e=- -f=- -l -n=- -p=- -s=- -w=- --auto-servernum",
        wraps=Wrapper(),
    ),
    "zsh": ProgramRow(
        operands="r:- ^",
        options="-c=-!none -o=- -O=- --rcfile=r --init-file=r",
        unwrap=unwrap_shell,
        is_interpreter=True,
    ),
}
PROGRAMS = list_by_name(_ROWS)
