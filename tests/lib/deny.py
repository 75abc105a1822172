"""Refuse system calls in a child, by a seccomp filter that is set between fork and exec."""
import ctypes
import platform
import struct

BPF_LD_W_ABS, BPF_JEQ, BPF_RET = 0x20, 0x15, 0x06
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7fff0000
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2

# Numbers of x86-64.  On other machines nothing can be refused by name.
NUMBERS = {
    "poll": 7, "pread64": 17, "mremap": 25, "madvise": 28, "uname": 63, "flock": 73, "fsync": 74,
    "fdatasync": 75, "ftruncate": 77, "link": 86, "symlink": 88, "chmod": 90, "fchmod": 91,
    "sysinfo": 99, "statfs": 137, "fstatfs": 138, "mlock": 149, "prctl": 157, "arch_prctl": 158,
    "sched_setaffinity": 203,
    "sched_getaffinity": 204, "fadvise64": 221, "set_mempolicy": 238, "linkat": 265,
    "symlinkat": 266, "ppoll": 271, "sync_file_range": 277, "timerfd_create": 283,
    "fallocate": 285, "signalfd4": 289, "eventfd2": 290, "preadv": 295, "getcpu": 309,
    "renameat2": 316, "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435,
    "futex_waitv": 449,
} if platform.machine() == "x86_64" else {}


class _Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def deny(numbers, error, first=None):
    """Returns a preexec_fn that makes system calls with these numbers fail with error; only those
    with this first argument, if one is given."""
    steps = [(BPF_LD_W_ABS, 0, 0, 0)]
    for n in numbers:
        if first is None:
            steps += [(BPF_JEQ, 0, 1, n), (BPF_RET, 0, 0, SECCOMP_RET_ERRNO | error)]
        else:
            steps += [(BPF_JEQ, 0, 4, n), (BPF_LD_W_ABS, 0, 0, 16), (BPF_JEQ, 0, 1, first),
                      (BPF_RET, 0, 0, SECCOMP_RET_ERRNO | error), (BPF_LD_W_ABS, 0, 0, 0)]
    steps.append((BPF_RET, 0, 0, SECCOMP_RET_ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *s) for s in steps))
    program = _Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        _ = code  # must live as long as the function
    return apply
