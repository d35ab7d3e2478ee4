# SPDX-License-Identifier: MIT
"""Runs a command in a guest. See USAGE, and tools/vm/init.c for the inside."""

import hashlib
import os
import signal
import subprocess
import sys

import disk
import fail
import kernel
import klog
from guest import Guest

USAGE = """\
Usage: tools/vm/vm [OPTION]... -- CMD [ARG]...

Runs CMD as root in a guest that sees this machine's files: in the project's
folder, build/bin first in PATH. What CMD writes is thrown away, except on the
log disk at /var/lib/plog when an image is named. Output and exit status are
CMD's.

The guest:
  --kernel stock|debug|6.12  its kernel, see tools/kernel/kernel (default stock)
  --smp N                    its CPUs (default 2)
  --mem SIZE                 its memory (default 2G)
  --load                     insert build/module/RELEASE/plog.ko first
  --module FILE              insert this module instead
  --publish HOST:GUEST       forward port HOST of 127.0.0.1 to port GUEST of
                             the guest; may be given more than once. The guest
                             reaches nothing outside.
  --answer PORT:COMMAND      where the guest connects to port PORT of 10.0.2.100,
                             run COMMAND on this machine, the connection being
                             its input and output
  --icount                   count instructions: the guest's clock advances
                             1 ns with each; one CPU
  --append WORDS             add words to the kernel's command line

The log disk:
  --disk SIZE                its size (default 4G); takes no room until written
  --fs ext4|xfs|btrfs|tmpfs  its file system (default ext4)
  --image FILE               keep it in FILE, made when there is none; without
                             this it is empty each time
  --no-disk                  none: /var/lib/plog is an ordinary folder

The run:
  --timeout SECONDS          end CMD after so long, 0 for never (default 600)
  --grace SECONDS            how long CMD has to end when vm gets SIGINT or
                             SIGTERM, which CMD gets as SIGTERM (default 20);
                             a second signal kills CMD, a third the guest
  --stdin                    CMD reads vm's stdin; else its stdin is empty
  --env NAME[=VALUE]         set, or pass on, a variable of the environment;
                             TERM, TZ, LANG, LC_*, PLOG_* always pass
  --no-leak-check            do not look for leaked memory at the end (only
                             the debug kernel does; it takes about 10 s)
  --log FILE                 write the kernel's log to FILE
  -v, --verbose              the kernel's log to stderr while it runs
  -h, --help                 this text

Exit status:
  CMD's, or 128+N if signal N ended it; 127 no such command, 126 not executable
   99  the kernel reported a failure (oops, warning, KASAN, lockdep, leak, hung
       task, ...), or the guest died, whatever CMD said
  124  the time was over
  125  no guest could be had
    2  wrong options

The module under test is removed when CMD has ended, if nothing uses it. In the
guest PLOG_VM is the name of the kernel's kind.
"""

FS_MODULES = {"ext4": ["ext4"], "xfs": ["xfs"], "btrfs": ["btrfs"]}

# Environment that means something in the guest. The rest is the caller's own:
# the job server of make, credentials, desktop sockets.
PASS = ("TERM", "TZ", "LANG", "LANGUAGE")


class Options:
    """The command line."""

    def __init__(self, argv):
        self.kernel = "stock"
        self.smp = 2
        self.mem = 2 << 30
        self.load = False
        self.module = None
        self.publish = []
        self.answer = []
        self.icount = False
        self.append = ""
        self.disk = 4 << 30
        self.fs = None
        self.image = None
        self.no_disk = False
        self.timeout = 600
        self.grace = 20
        self.stdin = False
        self.env = {}
        self.leak_check = True
        self.log = None
        self.verbose = False
        self.smp_given = False
        self.command = self._parse(argv)
        if not self.command:
            raise fail.Usage("no command; write it behind --, as in: tools/vm/vm -- uname -a")
        if self.no_disk and (self.image or self.fs):
            raise fail.Usage("--no-disk excludes --fs and --image")
        if self.icount:
            if self.smp_given and self.smp != 1:
                raise fail.Usage("--icount counts on one CPU only; leave --smp away")
            self.smp = 1

    def _parse(self, argv):
        args = list(argv)
        while args:
            arg = args.pop(0)
            if arg == "--":
                return args
            if not arg.startswith("-"):
                return [arg] + args
            name, eq, value = arg.partition("=")
            flag = self._FLAGS.get(name)
            taker = self._TAKERS.get(name)
            if flag:
                if eq:
                    raise fail.Usage(f"{name} takes no value")
                setattr(self, *flag)
            elif taker:
                if not eq:
                    if not args or args[0] == "--":
                        raise fail.Usage(f"{name} needs a value")
                    value = args.pop(0)
                taker(self, name, value)
            elif name in ("-h", "--help"):
                print(USAGE, end="")
                sys.exit(0)
            else:
                raise fail.Usage(f"unknown option {arg}; see --help")
        return []

    _FLAGS = {
        "--load": ("load", True),
        "--icount": ("icount", True),
        "--no-disk": ("no_disk", True),
        "--stdin": ("stdin", True),
        "--no-leak-check": ("leak_check", False),
        "--verbose": ("verbose", True),
        "-v": ("verbose", True),
    }

    def _one_of(attr, choices):
        def take(self, name, value):
            if value not in choices:
                raise fail.Usage(f"{name}: '{value}' is not one of {', '.join(choices)}")
            setattr(self, attr, value)

        return take

    def _number(attr, least, most):
        def take(self, name, value):
            if not value.isdigit() or not least <= int(value) <= most:
                raise fail.Usage(f"{name}: '{value}' is not a number from {least} to {most}")
            setattr(self, attr, int(value))
            if attr == "smp":
                self.smp_given = True

        return take

    def _size(attr):
        def take(self, name, value):
            setattr(self, attr, disk.parse_size(value, name))

        return take

    def _text(attr):
        def take(self, name, value):
            if not value:
                raise fail.Usage(f"{name} needs a value")
            setattr(self, attr, value)

        return take

    def _port(self, name, value):
        parts = value.split(":")
        if len(parts) != 2 or not all(p.isdigit() and 0 < int(p) < 65536 for p in parts):
            raise fail.Usage(f"{name}: '{value}' is not HOST:GUEST, two port numbers")
        self.publish.append((int(parts[0]), int(parts[1])))

    def _answer(self, name, value):
        port, _, command = value.partition(":")
        if not port.isdigit() or not 0 < int(port) < 65536 or not command:
            raise fail.Usage(f"{name}: '{value}' is not PORT:COMMAND")
        self.answer.append((int(port), command))

    def _env(self, name, value):
        key, eq, text = value.partition("=")
        if not key:
            raise fail.Usage(f"{name}: '{value}' has no name")
        if eq:
            self.env[key] = text
        elif key in os.environ:
            self.env[key] = os.environ[key]

    _TAKERS = {
        "--kernel": _one_of("kernel", ("stock", "debug", "6.12")),
        "--smp": _number("smp", 1, 8),
        "--mem": _size("mem"),
        "--append": _text("append"),
        "--module": _text("module"),
        "--publish": _port,
        "--answer": _answer,
        "--disk": _size("disk"),
        "--fs": _one_of("fs", disk.FILE_SYSTEMS),
        "--image": _text("image"),
        "--timeout": _number("timeout", 0, 10**7),
        "--grace": _number("grace", 0, 10**5),
        "--env": _env,
        "--log": _text("log"),
    }


def say(text):
    print(f"vm: {text}", file=sys.stderr, flush=True)


def cache_dir():
    home = os.environ.get("HOME", "/tmp")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.environ.get("PLOG_CACHE") or os.path.join(base, "plog")


def init_program(here):
    """Returns the file of the guest's init, compiled when its source is new."""
    sources = [os.path.join(here, f) for f in ("init.c", "guest.c", "symbols.c")]
    digest = hashlib.sha256()
    for file in sources + [os.path.join(here, "init.h")]:
        with open(file, "rb") as f:
            digest.update(f.read())
    folder = os.path.join(cache_dir(), "vm")
    program = os.path.join(folder, "init-" + digest.hexdigest()[:16])
    if not os.path.exists(program):
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as e:
            raise fail.Broken(f"cannot make {folder}: {e.strerror}; set PLOG_CACHE") from None
        made = f"{program}.{os.getpid()}"
        done = subprocess.run(
            [os.environ.get("CC", "gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-static",
             "-Wall", "-Wextra", "-Werror", "-o", made] + sources
        )
        if done.returncode:
            raise fail.Broken("cannot compile the guest's init (above)")
        os.rename(made, program)
    return program


def read(file):
    with open(file, "rb") as f:
        return f.read()


def tsc_khz(here, opt):
    """Returns the frequency of the guest's time stamp counter."""
    if opt.icount:
        return 1000000
    done = subprocess.run([init_program(here), "tsc-khz"], stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


def find_module(top, opt, kern):
    """Returns the file of the module to insert, or None."""
    if opt.module:
        file = os.path.abspath(opt.module)
        if not os.path.exists(file):
            raise fail.Broken(f"--module: there is no {file}")
    elif opt.load:
        file = os.path.join(top, "build/module", kern.release, "plog.ko")
        if not os.path.exists(file):
            raise fail.Broken(
                f"--load: there is no {os.path.relpath(file, top)}; "
                f"build it with: tools/kernel/module {opt.kernel}"
            )
    else:
        return None
    built_for = kernel.release_of(file)
    if built_for != kern.release:
        raise fail.Broken(f"{file} is for kernel {built_for}, the guest has {kern.release}")
    return file


def initramfs(top, here, opt, kern, log_disk):
    """Returns the guest's first files: init, modules, and its orders."""
    names = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay",
             "crc32c_intel", "crc32c_generic"]
    if log_disk and log_disk.fs != "tmpfs":
        names += ["virtio_blk"] + FS_MODULES[log_disk.fs]
    if opt.publish or opt.answer:
        names.append("virtio_net")
    module = find_module(top, opt, kern)
    if module:
        names += kernel.needs(module)

    conf = []
    files = [("dev", 0o40755, b""), ("m", 0o40755, b""),
             ("init", 0o755, read(init_program(here)))]
    for name, data in kern.files(names):
        files.append((f"m/{name}.ko", 0o644, data))
        conf.append(f"module=/m/{name}.ko")
    if module:
        # /m is out of sight once the machine's root is mounted: inserted from
        # its own place.
        conf.append(f"insert={module}")
    keep = {top, cache_dir(), kern.modules}
    if module:
        keep.add(os.path.dirname(module))
    # A folder inside another one that is kept needs no mount of its own.
    keep = {k for k in keep if not any(k.startswith(o + "/") for o in keep)}
    conf += [f"keep={k}" for k in sorted(keep)]
    conf.append(f"cwd={top}")
    conf.append(f"libmodules={kern.modules}")
    if log_disk:
        conf.append(f"fs={log_disk.fs}")
        conf.append(f"disk={log_disk.size}")
    if opt.publish or opt.answer:
        conf.append("net=1")
    if one_stream():
        conf.append("merge=1")
    if opt.stdin:
        conf.append("input=1")
    if opt.kernel == "debug" and opt.leak_check:
        conf.append("leaks=1")
    conf += [f"env={k}={v}" for k, v in environment(top, opt).items()]
    conf += [f"arg={a}" for a in opt.command]
    files.append(("run.conf", 0o644, b"".join(c.encode(errors="surrogateescape") + b"\0"
                                               for c in conf)))
    return kernel.cpio(files)


def environment(top, opt):
    env = {k: v for k, v in os.environ.items() if k in PASS or k.startswith(("LC_", "PLOG_"))}
    path = os.environ.get("PATH", "")
    for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"):
        if folder not in path.split(":"):
            path = f"{path}:{folder}" if path else folder
    env.update(
        PATH=f"{top}/build/bin:{path}",
        HOME=os.environ.get("HOME", "/"),
        USER="root",
        LOGNAME="root",
        PLOG_VM=opt.kernel,
    )
    env.update(opt.env)
    return env


def one_stream():
    """True if our stdout and stderr are the same open file or terminal."""
    try:
        a, b = os.fstat(1), os.fstat(2)
    except OSError:
        return False
    return (a.st_dev, a.st_ino, a.st_rdev) == (b.st_dev, b.st_ino, b.st_rdev)


def qemu(here, opt, kern, log_disk):
    """Returns QEMU's command line, without ports and initramfs."""
    accel = "tcg,thread=single" if opt.icount else "tcg,thread=multi"
    argv = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
        "-name", "plog-vm", "-display", "none", "-monitor", "none",
        "-machine", "q35,vmport=off,smbus=off,sata=off", "-accel", accel,
        # la57: 6.1 clears its flags of a CPU for a moment while it looks at one; an
        # interrupt then has KASAN take a five-level address for a wild one.
        # erms, fsrm: with them the kernel copies and clears memory by instructions
        # that are emulated byte by byte; without, by eight bytes.  A page of zeros is
        # ten times as fast, a write to a file twice.
        "-cpu", "max,la57=off,-erms,-fsrm",
        "-smp", str(opt.smp), "-m", f"{opt.mem >> 20}M",
        "-kernel", kern.image, "-append", kernel_command_line(here, opt),
        "-virtfs", "local,path=/,mount_tag=machine,security_model=none,"
                   "readonly=on,multidevs=remap",
    ]
    if opt.icount:
        argv += ["-icount", "shift=0"]
    if log_disk and log_disk.path:
        # Nothing of a throwaway disk need ever reach the platter.
        cache = "writeback" if log_disk.kept else "unsafe"
        path = log_disk.path.replace(",", ",,")
        argv += [
            "-drive", f"if=none,id=logs,file={path},format=raw,cache={cache},discard=unmap",
            "-device", "virtio-blk-pci,drive=logs",
        ]
    if opt.publish or opt.answer:
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{h}-:{g}" for h, g in opt.publish)
        forwards += "".join(f",guestfwd=tcp:10.0.2.100:{port}-cmd:{command.replace(',', ',,')}"
                            for port, command in opt.answer)
        argv += [
            "-netdev", f"user,id=net,restrict=on{forwards}",
            "-device", "virtio-net-pci,netdev=net,romfile=",
        ]
    else:
        argv += ["-nic", "none"]
    return argv


def kernel_command_line(here, opt):
    words = ["console=ttyS0", "loglevel=7", "panic=-1", "oops=panic", "nokaslr",
             "mitigations=off", "random.trust_cpu=on", "tsc=reliable",
             f"tsc_early_khz={tsc_khz(here, opt)}", "no_timer_check",
             "apparmor=0", "audit=0", "cryptomgr.notests", "net.ifnames=0", "printk.devkmsg=on",
             # An emulated CPU may wait long for one of the machine's.
             "watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=120"]
    if opt.kernel == "debug":
        words += ["panic_on_warn=1", "kmemleak=on"]
    if opt.append:
        words.append(opt.append)
    return " ".join(words)


def show_log(text):
    print("vm: ---- kernel log ----", file=sys.stderr)
    for line in klog.tail(text):
        print(f"vm: | {line}", file=sys.stderr)
    print("vm: --------------------", file=sys.stderr, flush=True)


def verdict(opt, guest):
    """Returns the exit status, and says what went wrong."""
    console, full = guest.kernel_log()
    if opt.log:
        with open(opt.log, "w", encoding="utf-8") as f:
            f.write(full if len(full) > len(console) else console)
    found = klog.reports(console) or klog.reports(full)
    log = console if klog.reports(console) or not full else full

    if found:
        if not opt.verbose:
            show_log(log)
        for line in guest.texts + guest.failures:
            say(line)
        # The line behind "cut here" says what it is.
        first = next((line for line in found if "---[" not in line), found[0])
        say(f"the kernel reported a failure: {first.strip()}")
        return fail.KERNEL
    if guest.fatal or guest.ready is None:
        if guest.ended_by and not guest.fatal:
            # Who has waited for long wants to know what for; who types Ctrl-C knows.
            if guest.ended_by == "SIGTERM":
                if not opt.verbose and console:
                    show_log(console)
                say(f"ended by SIGTERM while the guest booted, after {guest.age():.0f} s")
            return 128 + getattr(signal, guest.ended_by)
        if not opt.verbose and console:
            show_log(console)
        errors = guest.qemu_errors()
        if errors:
            say(f"QEMU says: {errors}")
        say(f"no guest: {guest.fatal or 'it ended before it ran the command'}")
        return fail.BROKEN
    if guest.failures:
        for line in guest.texts:
            say(line)
        for line in guest.failures:
            say(line)
        return fail.KERNEL
    if guest.ended_by == "timeout":
        if not opt.verbose:
            show_log(log)
        for line in guest.texts:
            say(line)
        say(f"the command took longer than {opt.timeout} s (--timeout)")
        return fail.TIMEOUT
    if not guest.done:
        if guest.ended_by:
            say("the guest was killed before it had ended by itself")
            return 128 + getattr(signal, guest.ended_by)
        if not opt.verbose:
            show_log(log)
        errors = guest.qemu_errors()
        if errors:
            say(f"QEMU says: {errors}")
        say("the guest died before its command had ended")
        return fail.KERNEL
    if guest.lost_output():
        say("output of the command was lost on the way")
        return fail.KERNEL
    return guest.status


def run(argv):
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(os.path.dirname(here))
    opt = Options(argv)
    kern = kernel.Kernel(top, opt.kernel)
    log_disk = None if opt.no_disk else disk.Disk(opt.fs, opt.disk, opt.image)
    guest = None
    try:
        guest = Guest(
            qemu(here, opt, kern, log_disk),
            initramfs(top, here, opt, kern, log_disk),
            0 if opt.stdin else None,
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, _: guest.signal(n))
        guest.start(one_stream(), opt.verbose)
        guest.run(opt.timeout or None, opt.grace, log_disk.forget if log_disk else None)
    finally:
        if guest:
            guest.stop()
        if log_disk:
            log_disk.forget()
    if opt.verbose:
        if guest.ready is not None:
            say(f"the command started {guest.ready:.1f} s after QEMU")
        for note in guest.notes:
            say(note)
    return verdict(opt, guest)


def main():
    try:
        return run(sys.argv[1:])
    except fail.Usage as e:
        say(str(e))
        return fail.USAGE
    except fail.Broken as e:
        say(str(e))
        return fail.BROKEN
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
