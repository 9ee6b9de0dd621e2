"""Random scripts of the model's words, a function of a seed; each ends by itself."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c", "d")
VALUES = (
    "x",
    "'hello world'",
    "'one two'",
    '"$a b"',
    "12",
    "a.b.c",
    "/usr/lib/x.tar.gz",
    '""',
    "-n",
    '"  "',
)
PATTERNS = ("*.*", "*/", ".*", "?", "*", "[a-m]*", "x")
TESTS = (
    '[ "${v}" = x ]',
    '[ "${v}" = "hello world" ]',
    '[ -z "${v}" ]',
    '[ -n "${v}" ]',
    "[ {n} -lt {m} ]",
    "[ ! {n} -ge {m} ]",
    "test {n} -eq {m}",
    "[ -f out.txt ]",
    '[ "${v}" != x ]',
)


class Writer:
    """Writes one script."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0

    def script(self) -> str:
        """Return a script of a few commands."""
        count = self.random.randint(2, 6)
        return "\n".join(self.command(3) for _ in range(count)) + "\n"

    def command(self, depth: int) -> str:
        """Return a command whose parts are at most so deep."""
        simple = (self.echo, self.printf, self.assignment, self.status, self.file, self.positional)
        compound = (
            self.condition, self.alternatives, self.counted, self.case, self.pipe, self.subshell,
            self.function, self.list, self.group, self.document, self.substituted, self.evaluated,
        )  # fmt: skip
        if depth <= 0 or self.random.random() < 0.4:
            return self.random.choice(simple)()
        return self.random.choice(compound)(depth - 1)

    def name(self) -> str:
        """Return the name of a variable."""
        return self.random.choice(NAMES)

    def number(self) -> int:
        """Return a small number."""
        return self.random.randint(-3, 12)

    def word(self) -> str:
        """Return a word that is expanded."""
        name = self.name()
        pattern = self.random.choice(PATTERNS)
        number = self.number()
        forms = (
            f"${name}", f'"${name}"', f"${{{name}:-none}}", f"${{{name}-unset}}", f"${{#{name}}}",
            f'"${{{name}%{pattern}}}"', f'"${{{name}##{pattern}}}"', f'"${{{name}%%{pattern}}}"',
            f'"${{{name}#{pattern}}}"', f"${{{name}:+set}}", f"$(({number} * 3 + {self.number()}))",
            f"$((({number} - 2) % 5))", f"$(({number} > 2 ? 7 : 8))", "$?", "$#", '"$@"', "$*",
            "$1", f"$(echo {name} ${name})", f'"$(printf "%s-" ${name})"', f"`echo ${name}`",
            "'single $a'", '"a\\"b"', "x\\ y", f"pre${{{name}}}post",
        )  # fmt: skip
        return self.random.choice(forms)

    def words(self) -> str:
        """Return one to three words."""
        return " ".join(self.word() for _ in range(self.random.randint(1, 3)))

    def test(self) -> str:
        """Return a condition."""
        form = self.random.choice((*TESTS, "true", "false"))
        return form.format(v=self.name(), n=self.number(), m=self.number())

    def echo(self) -> str:
        """Return a line that is printed."""
        return f"echo {self.words()}"

    def printf(self) -> str:
        """Return a formatted line."""
        form = self.random.choice(("%s\\n", "[%5s]\\n", "%-4s|\\n", "%s %s\\n", "<%s>\\n"))
        return f"printf '{form}' {self.words()}"

    def assignment(self) -> str:
        """Return an assignment."""
        if self.random.random() < 0.1:
            return f": ${{{self.name()}:=def}}"
        value = self.random.choice((*VALUES, self.word()))
        return f"{self.name()}={value}"

    def status(self) -> str:
        """Return a command with an exit status."""
        number = self.random.randint(0, 5)
        return self.random.choice(
            (f"(exit {number}); echo $?", "true", "false; echo $?", "! true; echo $?")
        )

    def file(self) -> str:
        """Return a command with a file."""
        return self.random.choice(
            (
                f"echo {self.word()} >out.txt",
                f"echo {self.word()} >> out.txt",
                "[ -f out.txt ] && cat < out.txt",
                f'while read -r {self.name()} rest; do echo "<$rest>"; done < /dev/null',
                "echo err >&2",
                "echo both 2>&1",
            )
        )

    def positional(self) -> str:
        """Return a command about the arguments."""
        return self.random.choice(
            (
                f"set -- {self.words()}",
                "[ $# -gt 0 ] && shift",
                'for each; do echo "<$each>"; done',
                "echo $#",
            )
        )

    def condition(self, depth: int) -> str:
        """Return an ``if``."""
        parts = [f"if {self.test()}; then {self.command(depth)}"]
        if self.random.random() < 0.3:
            parts.append(f"elif {self.test()}; then {self.command(depth)}")
        if self.random.random() < 0.6:
            parts.append(f"else {self.command(depth)}")
        return "\n".join([*parts, "fi"])

    def alternatives(self, depth: int) -> str:
        """Return commands that depend on each other."""
        first, second = self.random.choice((("&&", "||"), ("||", "&&"), ("&&", "&&")))
        return f"{self.test()} {first} echo {self.word()} {second} {{ {self.command(depth)}\n}}"

    def counted(self, depth: int) -> str:
        """Return a loop that ends."""
        self.loops += 1
        counter = f"i{self.loops}"
        leave = self.random.choice(
            ("", f"[ ${counter} -eq 2 ] && break\n", f"[ ${counter} -eq 1 ] && continue\n")
        )
        if self.random.random() < 0.5:
            return f"for {counter} in 1 2 3; do\n{leave}{self.command(depth)}\ndone"
        step = f"{counter}=$(({counter} + 1))"
        return f"{counter}=0\nwhile [ ${counter} -lt 3 ]; do {step}\n{leave}{self.command(depth)}\ndone"  # noqa: E501

    def case(self, depth: int) -> str:
        """Return a ``case``."""
        pattern = self.random.choice(PATTERNS)
        body = self.command(depth)
        return f"case {self.word()} in\n x|y) echo x;;\n {pattern}) {body}\n;;\n *) echo other;;\nesac".replace(  # noqa: E501
            'case "$@" in', "case $* in"
        )

    def pipe(self, depth: int) -> str:
        """Return a pipeline."""
        name = self.name()
        last = f'while read -r {name}; do echo "got ${name}"; done'
        return f"{{ {self.command(depth)}\n}} | {last}"

    def subshell(self, depth: int) -> str:
        """Return a subshell."""
        return f"( {self.command(depth)}\n)"

    def function(self, depth: int) -> str:
        """Return a function and its call."""
        status = self.random.randint(0, 3)
        return f"f{depth}() {{ {self.command(depth)}\nreturn {status}\n}}\nf{depth} {self.words()}; echo $?"  # noqa: E501

    def list(self, depth: int) -> str:
        """Return two commands."""
        return f"{self.command(depth)}\n{self.command(depth)}"

    def group(self, depth: int) -> str:
        """Return a group with a redirection."""
        path = f"group{depth}.txt"
        return f"{{ {self.command(depth)}\n}} > {path}; cat < {path}"

    def document(self, depth: int) -> str:
        """Return a here-document."""
        limit = self.random.choice(("E", "'E'", "-E"))
        name = self.name()
        return f'while read -r {name}; do echo "line ${name}"; done <<{limit}\nv=${name} $((1 + 2))\nlast\nE'  # noqa: E501

    def substituted(self, depth: int) -> str:
        """Return a variable that holds what a command prints."""
        name = self.name()
        return f'{name}=$( {self.command(depth)}\n); echo "$?:${name}"'

    def evaluated(self, depth: int) -> str:
        """Return a command that is read twice, or a trap."""
        return self.random.choice(
            (
                f"eval 'echo {self.number()} $a'",
                f"(trap 'echo bye' EXIT; {self.command(depth)}\n)",
                f"sh -c 'echo $0 $1' n {self.number()}",
            )
        )


def random_script(seed: int) -> str:
    """Return the script of a seed."""
    return Writer(seed).script()
