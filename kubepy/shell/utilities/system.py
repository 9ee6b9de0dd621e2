"""Programs that tell of the machine: hostname, id, uname, ps, df, free, mount and others."""

from __future__ import annotations

from kubepy.shell.files import MISSING, Tree
from kubepy.shell.processfiles import mounted_systems
from kubepy.shell.surroundings import NetworkError
from kubepy.shell.utilities.inputs import absolute
from kubepy.shell.utilities.listing import human_size
from kubepy.shell.utilities.program import (
    Arguments,
    ArgumentStyle,
    Failure,
    complain,
    program,
    usage_error,
)
from kubepy.shell.utility import Execution, Unknown

KERNEL = "0"  # as the nodes of a cluster say
MACHINE = "x86_64"
PROCESSORS = 4
MEMORY = 8 * 1024**2  # kibibytes
DISK = 100 * 1024**2  # kibibytes
DISK_TITLES = {
    "h": ("Size", "Avail"),
    "k": ("1K-blocks", "Available"),
    "m": ("1M-blocks", "Available"),
}


@program(
    "-s,--short", "-f,--fqdn,--long", "-i,--ip-address", "-I,--all-ip-addresses", "-d,--domain"
)
def hostname(call: Execution, options: Arguments) -> int:
    """Print the name or the addresses of a pod."""
    if options.operands:
        raise Unknown("hostname that sets a name")
    name = call.hostname
    if options.has("i", "I"):
        call.reads_network()
        try:
            addresses = call.surroundings.resolve(name, call.now)
        except NetworkError:
            raise Failure("Name or service not known") from None
        call.out(" ".join(addresses) + (" \n" if options.has("I") else "\n"))
        return 0
    if options.has("s"):
        name = name.partition(".")[0]
    if options.has("f"):
        name = _full_name(call)
    if options.has("d"):
        name = _full_name(call).partition(".")[2]
        call.out(f"{name}\n" if name else "")
        return 0
    call.out(f"{name}\n")
    return 0


def _full_name(call: Execution) -> str:
    """Return the first name that /etc/hosts has for the host, its own name otherwise."""
    if call.files.is_file("/etc/hosts"):
        for line in call.files.read("/etc/hosts").decode("utf-8", "replace").splitlines():
            names = line.partition("#")[0].split()[1:]
            if call.hostname in names:
                return names[0]
    return call.hostname


@program("-u,--user", "-g,--group", "-G,--groups", "-n,--name", "-r,--real")
def id_(call: Execution, options: Arguments) -> int:
    """Print the user and the groups."""
    if options.operands:
        raise Unknown("id of a user")
    user = call.user
    kind = options.last_of("u", "g", "G")
    if kind:
        numbers = {"u": [user], "g": [call.group], "G": _groups(call)}[kind]
        return _print_numbers(call, kind, numbers, has_names=options.has("n"))
    if options.has("n", "r"):
        raise Failure("cannot print only names or real IDs in default format")
    groups = ",".join(map(_shown_id, _groups(call)))
    call.out(f"uid={_shown_id(user)} gid={_shown_id(call.group)} groups={groups}\n")
    return 0


def _groups(call: Execution) -> list[int]:
    """Return all groups of the user, the primary one first as GNU's program has it; busybox's has
    them in the kernel's order."""
    others = sorted({*call.groups, call.group})
    if call.has_busybox:
        return others
    return [call.group, *(group for group in others if group != call.group)]


def _shown_id(number: int) -> str:
    if number == 0:
        return "0(root)"
    return str(number)


def _print_numbers(call: Execution, kind: str, numbers: list[int], *, has_names: bool) -> int:
    """Print users or groups, with names where these are asked for and known."""
    status = 0
    texts: list[str] = []
    what = "user" if kind == "u" else "group"
    for number in numbers:
        text = str(number)
        if has_names and number == 0:
            text = "root"
        elif has_names:
            complain(call, f"cannot find name for {what} ID {number}")
            status = 1
        texts.append(text)
    call.out(" ".join(texts) + "\n")
    return status


@program()
def whoami(call: Execution, options: Arguments) -> int:
    """Print the name of the user."""
    if options.operands:
        raise usage_error(call.name, f"extra operand '{options.operands[0]}'")
    if call.user:
        raise Failure(f"cannot find name for user ID {call.user}")
    call.out("root\n")
    return 0


@program(
    "-a,--all",
    "-s,--kernel-name",
    "-n,--nodename",
    "-r,--kernel-release",
    "-v,--kernel-version",
    "-m,--machine",
    "-o,--operating-system",
)
def uname(call: Execution, options: Arguments) -> int:
    """Print names of the system."""
    if options.operands:
        raise usage_error(call.name, f"extra operand '{options.operands[0]}'")
    values = {
        "s": "Linux",
        "n": call.hostname,
        "r": KERNEL,
        "v": "#1 SMP",
        "m": MACHINE,
        "o": "GNU/Linux",
    }
    wanted = [key for key in values if options.has(key, "a")] or ["s"]
    call.out(" ".join(values[key] for key in wanted) + "\n")
    return 0


@program()
def arch(call: Execution, options: Arguments) -> int:
    """Print the kind of machine."""
    call.out(f"{MACHINE}\n")
    return 0


@program("--all", "--ignore=N")
def nproc(call: Execution, options: Arguments) -> int:
    """Print how many processors there are."""
    ignored = options.get("ignore", "0")
    if not ignored.isdigit():
        raise Failure(f"invalid number: '{ignored}'")
    call.out(f"{max(PROCESSORS - int(ignored), 1)}\n")
    return 0


@program("-p,--pretty", "-s,--since")
def uptime(call: Execution, options: Arguments) -> int:
    """Print since when the container runs."""
    call.reads_clock()
    started = call.started or call.now
    if options.has("s"):
        call.out(f"{started:%Y-%m-%d %H:%M:%S}\n")
        return 0
    minutes = int((call.now - started).total_seconds()) // 60
    if options.has("p"):
        line = f"up {minutes} minute{'' if minutes == 1 else 's'}\n"
        call.out(line)
        return 0
    days, rest = divmod(minutes, 24 * 60)
    length = f"{rest} min"
    if rest >= 60:
        length = f"{rest // 60:2d}:{rest % 60:02d}"
    if days:
        length = f"{days} day{'' if days == 1 else 's'}, {length}"
    line = f" {call.now:%H:%M:%S} up {length},  0 users,  load average: 0.00, 0.00, 0.00\n"
    call.out(line)
    return 0


@program("-b,--bytes", "-k,--kibi", "-m,--mebi", "-g,--gibi", "-h,--human")
def free(call: Execution, options: Arguments) -> int:
    """Print the memory of the machine."""
    unit = options.last_of("b", "k", "m", "g", "h") or "k"
    used = MEMORY // 8
    cached = MEMORY // 4
    available = MEMORY - used
    titles = ["total", "used", "free", "shared", "buff/cache", "available"]
    numbers = [MEMORY, used, available - cached, 0, cached, available]
    cells = [_memory(number, unit) for number in numbers]
    swap = [_memory(0, unit)] * 3
    for title, row in (("", titles), ("Mem:", cells), ("Swap:", swap)):
        line = f"{title:<8}"
        for cell in row:
            line += f"{cell:>12}"
        call.out(f"{line}\n")
    return 0


def _memory(kibibytes: int, unit: str) -> str:
    if unit == "h":
        if kibibytes >= 1024**2:
            return f"{kibibytes / 1024**2:.1f}Gi"
        return f"{kibibytes}Ki"
    divisors = {
        "k": 1,
        "m": 1024,
        "g": 1024**2,
    }
    return str(kibibytes * 1024 if unit == "b" else kibibytes // divisors[unit])


@program("-a,--all", "-h,--human-readable", "-k", "-m", "-P,--portability")
def df(call: Execution, options: Arguments) -> int:
    """Print the file systems of a container with what is in them."""
    trees = {"/": call.files.root}
    devices = {place: device for device, place, _, _ in mounted_systems(call.files)}
    for mount in call.files.mounts:
        trees[mount.path] = mount.tree
    places = list(trees)
    status = 0
    if options.operands:
        places, status = _places_of(call, options.operands, places)
    if not places:
        return status
    unit = options.last_of("h", "k", "m") or "k"
    size_title, free_title = DISK_TITLES[unit]
    rows = [["Filesystem", size_title, "Used", free_title, "Use%", "Mounted on"]]
    rows += [[devices[place], *_disk_row(place, trees[place], unit)] for place in places]
    _print_table(call, rows)
    return status


def _places_of(call: Execution, names: list[str], places: list[str]) -> tuple[list[str], int]:
    """Return where the file systems of files are mounted, and the exit status."""
    chosen: list[str] = []
    status = 0
    for name in names:
        path = absolute(call, name)
        if call.files.exists(path):
            real = call.files.real_path(path)
            chosen.append(_mount_of(real, places))
        else:
            message = f"{name}: {MISSING}"
            complain(call, message)
            status = 1
    return chosen, status


def _disk_row(place: str, tree: Tree, unit: str) -> list[str]:
    total = DISK
    if tree.limit:
        total = tree.limit // 1024
    used = -(-tree.size // 1024)
    share = -(-used * 100 // total)
    return [
        _disk(total, unit),
        _disk(used, unit),
        _disk(total - used, unit),
        f"{share}%",
        place,
    ]


def _mount_of(path: str, places: list[str]) -> str:
    within = []
    for place in places:
        if f"{path}/".startswith(place.rstrip("/") + "/"):
            within.append(place)
    return max(within, key=len)


def _disk(kibibytes: int, unit: str) -> str:
    if unit == "h":
        if kibibytes:
            return human_size(kibibytes * 1024)
        return "0"
    if unit == "m":
        return str(-(-kibibytes // 1024))
    return str(kibibytes)


def _print_table(call: Execution, rows: list[list[str]]) -> None:
    columns = list(zip(*rows, strict=True))
    widths = []
    for column in columns:
        widths.append(max(len(cell) for cell in column))
    name_width = max(widths[0], 14)
    for row in rows:
        device, *numbers, place = row
        cells = [device.ljust(name_width)]
        for number, width in zip(numbers, widths[1:], strict=False):
            cells.append(number.rjust(width))
        line = " ".join([*cells, place])
        call.out(f"{line}\n")


@program("-t=TYPE", "-l")
def mount(call: Execution, options: Arguments) -> int:
    """List the file systems of a container."""
    if options.operands:
        raise Unknown("mount of a file system")
    for device, path, kind, access in mounted_systems(call.files):
        if options.get("t", kind) == kind:
            line = f"{device} on {path} type {kind} ({access},relatime)\n"
            call.out(line)
    return 0


@program("-d,--data", "-f,--file-system")
def sync(call: Execution, options: Arguments) -> int:
    """Write files to the disk: there is nothing to do."""
    for name in options.operands:
        if not call.files.exists(absolute(call, name)):
            raise Failure(f"error opening '{name}': No such file or directory")
    return 0


@program("a", "ax", "aux", "-e", "-A", "-ef", "-w", style=ArgumentStyle(is_raw=True))
def ps(call: Execution, options: Arguments) -> int:
    """List the processes: as busybox does, or as procps does for ``aux`` and ``-ef``."""
    call.reads_clock()
    style = "".join(options.operands).replace("-", "")
    if style in ("", "a", "x", "ax", "A", "e", "w", "ww"):
        call.out("PID   USER     TIME  COMMAND\n")
        for pid, _, user, command in call.processes:
            line = f"{pid:5d} {_user(user):<8s} {'0:00':>5s} {command}\n"
            call.out(line)
    elif style in ("aux", "auxw", "auxww", "auxf"):
        call.out("USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n")
        for pid, _, user, command in call.processes:
            owner = _user(user)
            start = _start(call)
            numbers = f"{pid:7d}  0.0  0.0   4000  1000"
            line = f"{owner:<8s} {numbers} ?        S    {start}   0:00 {command}\n"
            call.out(line)
    elif style in ("ef", "eaf", "Af"):
        call.out("UID          PID    PPID  C STIME TTY          TIME CMD\n")
        for pid, parent, user, command in call.processes:
            owner = _user(user)
            start = _start(call)
            numbers = f"{pid:7d} {parent:7d}  0"
            line = f"{owner:<8s} {numbers} {start} ?        00:00:00 {command}\n"
            call.out(line)
    else:
        raise Unknown(f"ps {' '.join(options.operands)}")
    return 0


def _user(user: int | str) -> str:
    if user == 0:
        return "root"
    return str(user)


def _start(call: Execution) -> str:
    return f"{call.started or call.now:%H:%M}"
