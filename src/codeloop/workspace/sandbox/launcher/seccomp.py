"""Refuses system calls that no command needs and that could lead out of a sandbox,
by seccomp filters (BPF).

`confine.py` installs a filter in every sandbox on Linux.
Each part of a filter is a list of BPF instructions.

Where Landlock alone confines, commands have no internet sockets. Nothing that a command prints
shows for certain that it failed for lack of them: its output may be cut, and its code that of
another program. So a supervisor has a filter of its own there (`refuse_internet`),
and answers each attempt itself.
"""

import ctypes
import errno
import fcntl
import os
import select
from _socket import AF_INET, SOCK_DGRAM, SOCK_STREAM, socket
from struct import Struct, pack

from codeloop.workspace.sandbox.launcher.libc import call_libc

# Values of the kernel's headers (errno, linux/seccomp.h, linux/filter.h),
# which Python has only in part.
_EPERM, _EACCES, _ENOSYS, _EAFNOSUPPORT = 1, 13, 38, 97
_ALLOW, _ERRNO, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_CALL_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
# Two ioctls that can type into the terminal that a program runs in,
# and so into the shell behind a sandbox.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# All CLONE_NEW* flags: a command with namespaces of its own could mount what it likes. The time
# namespace's flag is among the bits of a signal in `clone`, and so only valid in `unshare`.
_CLONE_NEW_FLAGS = 0x7E020000
_CLONE_NEWTIME = 0x80
_AF_UNIX, _AF_INET, _AF_NETLINK, _AF_INET6 = 1, 2, 16, 10
_O_TRUNC, _O_ACCMODE = 0o1000, 0o3
# Calls of the x32 ABI have this bit: other numbers for the same calls,
# which would pass the comparisons below.
_X32_BIT = 0x40000000

# The architecture's number in seccomp, and the column of its call numbers in the tables below.
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_REFUSED_CALLS = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
# A filter sees no memory, where these calls have their arguments. They fail as unknown calls
# (ENOSYS), so that programs fall back to older calls, which can be checked.
_HIDDEN_CALLS = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_IOCTL, _CLONE, _UNSHARE, _SOCKET = (16, 29), (56, 220), (272, 97), (41, 198)
# Installs a filter as `prctl` does, and gives its listener, if these flags ask for one.
_SECCOMP, _SET_FILTER, _NEW_LISTENER = (317, 277), 1, 8
# In place of the number of a call that an architecture does not have.
_NO_CALL = -1
_TRUNCATE, _OPEN, _OPENAT, _OPENAT2 = (76, 45), (2, _NO_CALL), (257, 56), (437, 437)

NO_LISTENER = -1
"""In place of the descriptor of a listener."""
# The ioctls of linux/seccomp.h that take an attempt from a listener, and answer it.
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
# `struct seccomp_notif`: the attempt's id, what is not used here, and the first two arguments;
# `seccomp_notif_resp`.
_ATTEMPT, _REFUSAL = Struct("=Q24xQQ32x"), Struct("=QqiI")
# The kind of a socket, without its flags.
_SOCKET_KIND_MASK = 0xF
_TRIAL_SECONDS = 5.0

_Instructions = list[tuple[int, int, int, int]]
"""Each as the kernel has it: the operation, the jumps if a comparison is true and if it is false,
the operand.
"""


def filter_calls(*, unix: bool, internet: bool, truncate: bool) -> None:
    """Install the filter for this process and all that it starts.

    `unix`, `internet`: whether such sockets may be made; `truncate`: whether files may be truncated
    by name. Raises OSError, also on an architecture whose call numbers are not known.
    """
    architecture, column = _find_architecture()
    # A process could make calls of another architecture (32-bit x86),
    # whose numbers mean other calls.
    code: _Instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_EQUAL, 1, 0, architecture),
        _refuse(_ENOSYS),
    ]
    code += [(_LOAD, 0, 0, _CALL_NUMBER_OFFSET)]
    if not column:
        code += [(_AT_LEAST, 0, 1, _X32_BIT), _refuse(_ENOSYS)]
    for refusal, rows in ((_EPERM, _REFUSED_CALLS), (_ENOSYS, _HIDDEN_CALLS)):
        for numbers in rows.values():
            code += _jump_if(numbers[column], [_refuse(refusal)])
    code += _jump_if(
        _IOCTL[column],
        [*_load_argument(1), *_refuse_value(_TIOCSTI, _EPERM), *_refuse_value(_TIOCLINUX, _EPERM)],
    )
    code += _jump_if(_CLONE[column], [*_load_argument(0), *_refuse_bits(_CLONE_NEW_FLAGS)])
    code += _jump_if(
        _UNSHARE[column], [*_load_argument(0), *_refuse_bits(_CLONE_NEW_FLAGS | _CLONE_NEWTIME)]
    )
    code += _jump_if(_SOCKET[column], _allow_socket_families(unix=unix, internet=internet))
    if not truncate:
        code += _jump_if(_TRUNCATE[column], [_refuse(_EPERM)]) + _jump_if(
            _OPENAT2[column], [_refuse(_ENOSYS)]
        )
        # Opening for reading, which also truncates: Landlock does not see that this writes.
        for numbers, flags_index in ((_OPEN, 1), (_OPENAT, 2)):
            check_flags = [
                *_load_argument(flags_index),
                (_AND, 0, 0, _O_TRUNC | _O_ACCMODE),
                *_refuse_value(_O_TRUNC, _EPERM),
            ]
            if numbers[column] != _NO_CALL:
                code += _jump_if(numbers[column], check_flags)
    head, _program = _make_program(code)
    call_libc("prctl", 22, 2, head, 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def refuse_internet() -> int:
    """Refuse internet sockets to this process and all that it starts. Raises OSError.

    Returns the listener, a descriptor that is readable when an attempt waits for `answer_attempt`;
    NO_LISTENER where nobody can be told of attempts.
    """
    try:
        return _watch_internet_sockets()
    except OSError:
        filter_calls(unix=True, internet=False, truncate=True)
        return NO_LISTENER


def answer_attempt(listener: int) -> bool:
    """Refuse an attempt to make a socket. Returns whether it shows that a program
    wants to use the network.
    """
    attempt = bytearray(_ATTEMPT.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, attempt)
        attempt_id, family, kind = _ATTEMPT.unpack(attempt)
        fcntl.ioctl(listener, _ANSWER, _REFUSAL.pack(attempt_id, 0, -errno.EACCES, 0))
    except OSError:
        # The program has ended meanwhile.
        return False
    # Libraries such as urllib3 try, when they are imported, whether there is IPv6;
    # names are looked up by datagrams.
    return family == AF_INET or kind & _SOCKET_KIND_MASK == SOCK_DGRAM


def can_watch_internet() -> bool:
    """Return whether attempts can be refused and noticed here,
    which is tried in processes of its own.
    """
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = 0 if _try_watch() else 1
        finally:
            os._exit(code)
    return not os.waitpid(pid, 0)[1]


def _try_watch() -> bool:
    listener = _watch_internet_sockets()
    program = os.fork()
    if not program:
        code = 1
        try:
            socket(AF_INET, SOCK_STREAM)
        except PermissionError:
            code = 0
        finally:
            os._exit(code)
    is_noticed = bool(select.select([listener], [], [], _TRIAL_SECONDS)[0]) and answer_attempt(
        listener
    )
    if not is_noticed:
        os.kill(program, 9)
    return not os.waitpid(program, 0)[1] and is_noticed


def _watch_internet_sockets() -> int:
    """Have a listener decide on each internet socket that this process or one that it starts makes.

    Returns the listener, a descriptor. Raises OSError,
    also where a filter outside of this sandbox has one already.
    """
    architecture, column = _find_architecture()
    decide = [(_RETURN, 0, 0, _NOTIFY)]
    code: _Instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_EQUAL, 1, 0, architecture),
        _refuse(_ENOSYS),
    ]
    code += [(_LOAD, 0, 0, _CALL_NUMBER_OFFSET)]
    families = [
        *_load_argument(0),
        (_EQUAL, 0, 1, _AF_INET),
        *decide,
        (_EQUAL, 0, 1, _AF_INET6),
        *decide,
    ]
    code += _jump_if(_SOCKET[column], families)
    head, _program = _make_program(code)
    return call_libc("syscall", _SECCOMP[column], _SET_FILTER, _NEW_LISTENER, head)


def _find_architecture() -> tuple[int, int]:
    """Return the row of this machine in _ARCHITECTURES. Raises OSError where it has none."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(
            errno.ENOTSUP, f"the system calls of this processor ({machine}) are not known"
        )
    return _ARCHITECTURES[machine]


def _make_program(code: _Instructions) -> tuple[bytes, ctypes.Array[ctypes.c_char]]:
    """Return a filter that allows the rest as the kernel reads it,
    and the memory with its instructions.
    """
    code = [*code, (_RETURN, 0, 0, _ALLOW)]
    # `struct sock_filter` for each instruction, then `struct sock_fprog`,
    # which holds their number and address.
    program = ctypes.create_string_buffer(b"".join(pack("=HBBI", *each) for each in code))
    call_libc("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    return pack("@HP", len(code), ctypes.addressof(program)), program


def _allow_socket_families(*, unix: bool, internet: bool) -> _Instructions:
    """Return the instructions that refuse all families of sockets but these;
    netlink is needed to list interfaces.
    """
    code = _load_argument(0)
    for family, is_on in (
        (_AF_UNIX, unix),
        (_AF_INET, internet),
        (_AF_INET6, internet),
        (_AF_NETLINK, True),
    ):
        code += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW) if is_on else _refuse(_EACCES)]
    return [*code, _refuse(_EAFNOSUPPORT)]


def _jump_if(number: int, then: _Instructions) -> _Instructions:
    """Return instructions that are carried out for one system call only."""
    # At the end the call's number is loaded again for the next comparison: `then` may
    # have loaded something else.
    return [(_EQUAL, 0, len(then) + 1, number), *then, (_LOAD, 0, 0, _CALL_NUMBER_OFFSET)]


def _load_argument(index: int) -> _Instructions:
    """Return the instruction that loads the lower 32 bits of an argument,
    all that the kernel uses of these.
    """
    return [(_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * index)]


def _refuse_value(value: int, refusal: int) -> _Instructions:
    return [(_EQUAL, 0, 1, value), _refuse(refusal)]


def _refuse_bits(bits: int) -> _Instructions:
    return [(_AND, 0, 0, bits), (_EQUAL, 1, 0, 0), _refuse(_EPERM)]


def _refuse(refusal: int) -> tuple[int, int, int, int]:
    """Return the instruction that lets a call fail with this error number."""
    return (_RETURN, 0, 0, _ERRNO | refusal)
