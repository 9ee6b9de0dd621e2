"""Random shell scripts of the words that the model knows: one seed is one script.

A script ends, prints the same in every shell, and reads nothing but what it has made itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

LITERALS = ("a", "bc", "foo", "x1", "hello", "k=v", "a.b", "-x", "1", "07", "42", "A-B", "_")
BLANKED = (
    "a b",
    " lead",
    "trail ",
    "x  y",
    "a:b:c",
    "one two three",
    "",
    "*",
    "a\\b",
    "q?",
    "t\tz",
)
ESCAPED = ("a", "'a\\tb'", "'x\\n'", "'\\101\\n'", "'back\\\\'")
ARGUMENTS = ("$@", "$*", '"$@"', '"$*"', "$#", '"a$@b"')
OPTIONS = ("-a", "-b 3 -c", "-ac", "-x", "-b", "x -a")
OPERATORS = ("+", "-", "*", "<", ">", "==", "!=", "<=", ">=", "&&", "||", "&", "|", "^")
NAMES = ("a", "b", "c", "n", "m", "long_name", "X")
PATTERNS = (
    "*",
    "?",
    "a*",
    "*o",
    "[a-c]*",
    "*[0-9]",
    "[!a]*",
    "f*o",
    "a|b",
    "x?",
    "'*'",
    '"$a"*',
    "*:*",
)
FILES = ("f1", "f2", "data.txt", "d/inner", "no-such")
TEXTS = (
    "one\ntwo\nthree\n",
    "b 2\na 1\nc 3\na 1\n",
    "k1=v1\nk2=v2\n",
    "x:y:z\n1:2:3\n",
    "no end",
    "  indented\n\nback\\slash\n",
)


class ScriptWriter:
    """Writes one script.

    :param is_bash: constructs of bash are used as well.
    """

    def __init__(self, seed: int, *, is_bash: bool = False) -> None:
        self.chance = random.Random(f"{seed}/{is_bash}")
        self.is_bash = is_bash
        # bash takes the old value before it evaluates the right side, dash after it.
        self.assignments = ("=",) if is_bash else ("=", "+=", "-=", "*=")
        self.depth = 0
        self.counters = 0
        self.files = 0
        self.functions: list[str] = []
        self.is_in_function = False
        self.is_in_loop = False

    # --- words

    def pick(self, choices: Sequence[str]) -> str:
        return self.chance.choice(choices)

    def one_of(self, *makers: Callable[[], str]) -> str:
        return self.chance.choice(makers)()

    def happens(self, share: float) -> bool:
        return self.chance.random() < share

    def new_file(self) -> str:
        """Return the name of a file that nothing else in the script writes."""
        self.files += 1
        return f"out{self.files}"

    def group_in_file(self, name: str) -> str:
        return f"{{ {self.block()}\n}} > {name}; cat {name}"

    def number(self) -> str:
        return str(self.chance.choice([0, 1, 2, 3, 5, 7, 10, 12, 99, -1, -4]))

    def word(self) -> str:
        """Return a word as a script writes it."""
        makers = [
            lambda: self.pick(LITERALS),
            lambda: self.pick(LITERALS),
            lambda: f"'{self.pick(BLANKED)}'",
            lambda: f'"{self.quoted_text()}"',
            lambda: f'"{self.quoted_text()}"',
            self.parameter,
            self.parameter,
            lambda: f"{self.pick(LITERALS)}{self.parameter()}",
            lambda: f"$(({self.expression()}))",
            lambda: self.pick(
                ["f*", "*.txt", "d/*", "no*such", "[fd]*", "~x", "\\$a", "a\\ b", "\\*"]
            ),
        ]
        if self.depth < 3:
            makers.append(self.substitution)
        if self.is_bash:
            makers += [self.bash_word] * 2
        return self.one_of(*makers)

    def bash_word(self) -> str:
        name = self.pick(NAMES)
        return self.pick(
            [
                "{1..4}", "x{a,b,c}y", "{c..a}", "$'a\\tb'",
                f"${{{name}/o/0}}", f"${{{name}//[a-c]/-}}",
                f"${{{name}^^}}", f"${{{name},,}}", f"${{{name}:1:2}}", f"${{{name}:1}}",
                f"${{{name}^}}",
                f'"${{{name}//o/00}}"', f'"${{{name}: -2}}"', "{1..10..3}", f"${{{name}/#a/Z}}",
                f"${{{name}/%o/Z}}",
            ]
        )  # fmt: skip

    def quoted_text(self) -> str:
        parts = []
        for _ in range(self.chance.randrange(1, 4)):
            parts.append(
                self.one_of(
                    lambda: self.pick([*LITERALS, "a b", " ", "*", "it's", '\\"', "\\$", "\\\\"]),
                    self.parameter,
                    lambda: f"$(({self.expression()}))",
                    lambda: self.substitution() if self.depth < 3 else "end",
                )
            )
        return "".join(parts)

    def parameter(self) -> str:
        name = self.pick(NAMES)
        return self.one_of(
            lambda: f"${name}" if self.happens(0.5) else f"${{{name}}}",
            lambda: f"${{{name}:-{self.simple_word()}}}",
            lambda: f"${{{name}{self.pick(['-', ':-', '+', ':+'])}{self.simple_word()}}}",
            lambda: f"${{{name}{self.pick(['=', ':='])}{self.pick(LITERALS)}}}",
            lambda: f"${{#{name}}}",
            lambda: f"${{{name}{self.pick(['#', '##', '%', '%%'])}{self.pick(PATTERNS)}}}",
            lambda: self.pick(["$#", "$1", "$2", "$?", "$@", "$*", "${1:-none}", "${10}"]),
        )

    def simple_word(self) -> str:
        return self.one_of(
            lambda: self.pick(LITERALS),
            lambda: f"${self.pick(NAMES)}",
            lambda: f'"{self.pick(LITERALS)} ${self.pick(NAMES)}"',
            lambda: "a b",
            lambda: "",
        )

    def substitution(self) -> str:
        self.depth += 1
        body = self.one_of(self.printing, self.pipeline, self.printing)
        self.depth -= 1
        if "`" not in body and "\\" not in body and '"' not in body and self.happens(0.15):
            return f"`{body}`"
        if body.startswith("("):
            body = f" {body}"
        return f"$({body})"

    def expression(self, depth: int = 0) -> str:
        makers = [
            self.number,
            lambda: self.pick(["i", "j", "$i", "n0", "${j:-3}"]),
        ]
        if depth < 3:
            makers += [
                lambda: (
                    f"{self.expression(depth + 1)} "
                    f"{self.pick(OPERATORS)} "
                    f"{self.expression(depth + 1)}"
                ),
                lambda: f"({self.expression(depth + 1)})",
                lambda: f"{self.expression(depth + 1)} {self.pick('/%')} {self.pick('237')}",
                lambda: f"{self.expression(depth + 1)} {self.pick(['<<', '>>'])} {self.pick('13')}",
                lambda: f"{self.pick(['!', '-', '~'])} {self.expression(depth + 1)}",
                lambda: f"({self.expression(depth + 1)} ? {self.number()} : {self.number()})",
                lambda: f"(i {self.pick(self.assignments)} {self.expression(depth + 1)})",
            ]
            if self.is_bash:
                makers += [lambda: self.pick(["i++", "--j", "j--", "++i", "2 ** 3"])]
        return self.one_of(*makers)

    # --- commands

    def script(self) -> str:
        lines = []
        if self.happens(0.15):
            lines.append(self.pick(["set -e", "set -u", "set -eu", "set -f"]))
        if self.happens(0.1) and not (self.is_bash and lines):
            lines.append(f"trap 'echo bye {self.pick(LITERALS)} $?' EXIT")
        lines.append("i=1 j=5 n0=0")
        if self.happens(0.5):
            lines.append(f"{self.pick(NAMES)}={self.word_for_value()}")
        for _ in range(self.chance.randrange(2, 8)):
            lines.append(self.command())
        if self.happens(0.2):
            lines.append(f"exit {self.pick(['0', '1', '3', '255', '$?', '$i'])}")
        return "\n".join(lines) + "\n"

    def block(self) -> str:
        self.depth += 1
        count = self.chance.randrange(1, 4)
        commands = [self.command() for _ in range(count)]
        self.depth -= 1
        return "\n".join(commands)

    def command(self) -> str:
        makers = [
            self.printing, self.printing, self.assignment, self.assignment, self.pipeline,
            self.with_files, self.and_or, self.state,
        ]  # fmt: skip
        if self.depth < 3:
            makers += [
                self.if_, self.for_, self.while_, self.case, self.function, self.grouped,
                self.read_loop,
                self.heredoc, self.job,
            ]  # fmt: skip
            if self.is_bash:
                makers += [self.bash_command] * 2
        if self.is_in_loop:
            makers.append(self.leave_loop)
        if self.is_in_function:
            makers += [
                lambda: f"local {self.pick(NAMES)}={self.pick(LITERALS)}",
                lambda: f"if {self.condition()}; then return {self.pick(['0', '1', '4', ''])}; fi",
            ]
        if self.functions:
            makers.append(self.call)
        return self.one_of(*makers)

    def bash_command(self) -> str:
        return self.one_of(
            lambda: f"if [[ {self.extended()} ]]; then {self.printing()}; else echo not; fi",
            lambda: f"for ((k = 0; k < {self.pick(['2', '3'])}; k++)); do {self.printing()}; done",
            lambda: f"(({self.expression()})) && echo yes || echo no",
            lambda: f'let "i = {self.expression()}"; echo $i',
            lambda: f"cat <<< {self.word_for_value()}",
            lambda: f"{self.pick(NAMES)}+={self.word_for_value()}",
            lambda: f"printf -v {self.pick(NAMES)} '%03d' {self.number()}",
            lambda: f"echo {self.word()} &> out; cat out",
            lambda: f"echo {{a,b}}{self.word()}",
            lambda: f"function g {{ {self.printing()}; }}; g",
            lambda: "set -o pipefail; false | true; echo $?; set +o pipefail; echo $?",
        )

    def extended(self) -> str:
        return self.one_of(
            lambda: f"${self.pick(NAMES)} == {self.pick(['a*', '*o', 'foo', '?', '[a-c]*'])}",
            lambda: f"${self.pick(NAMES)} != {self.pick(['a*', '*o', 'foo'])}",
            lambda: f"${self.pick(NAMES)} =~ {self.pick(['^a', '[0-9]+', 'o$', '^[a-z]+$'])}",
            lambda: f"-n ${self.pick(NAMES)} && $i -lt {self.number()}",
            lambda: f"-z ${self.pick(NAMES)} || -f f1",
            lambda: f"! ( -d d ) || ${self.pick(NAMES)} < b",
        )

    def printing(self) -> str:
        return self.one_of(
            lambda: f"echo {self.words()}",
            lambda: f"echo {self.words()}",
            lambda: f"echo -n {self.word()}",
            lambda: f"printf '%s\\n' {self.words()}",
            lambda: f"printf '[%s]' {self.words()}; echo",
            lambda: f"printf '%d-%d\\n' {self.number()} $(({self.expression()}))",
            lambda: f"printf '%5s|%-6s|%.2s\\n' {self.values(3)}",
            lambda: f"printf '%03d %x %o %c%%\\n' {self.pick('17')} 255 8 {self.pick(LITERALS)}",
            lambda: f"printf {self.pick(['%b', '%s', '%s..'])} {self.pick(ESCAPED)}",
            lambda: f"echo {self.pick(ARGUMENTS)}",
        )

    def words(self) -> str:
        return " ".join(self.word() for _ in range(self.chance.randrange(1, 4)))

    def values(self, count: int) -> str:
        return " ".join(self.word_for_value() for _ in range(count))

    def word_for_value(self) -> str:
        return self.one_of(
            lambda: f'"{self.quoted_text()}"',
            lambda: self.pick(LITERALS),
            lambda: f"'{self.pick(BLANKED)}'",
            lambda: f'"{self.parameter()}"',
        )

    def assignment(self) -> str:
        name = self.pick(NAMES)
        return self.one_of(
            lambda: f"{name}={self.word_for_value()}",
            lambda: f"{name}={self.parameter()}",
            lambda: f"{name}={self.substitution() if self.depth < 3 else 'deep'}",
            lambda: f"i=$(({self.expression()}))",
            lambda: f"{name}={self.word_for_value()} {self.pick(NAMES)}=${name}",
            lambda: f"{name}={self.pick(LITERALS)} sh -c 'echo \"[${name}]\"'",
            lambda: f"set -- {self.words()}",
        )

    def state(self) -> str:
        name = self.pick(NAMES)
        return self.one_of(
            lambda: f"unset {name}",
            lambda: f"export {name}={self.pick(LITERALS)}; sh -c 'echo ${name}'",
            lambda: f"export {name}; sh -c 'echo ${{{name}-unset}}'; echo $?",
            lambda: "[ $# -gt 0 ] && shift",
            lambda: f"eval 'echo ${name}; {name}=new'",
            lambda: f"eval \"{name}='{self.pick(LITERALS)}'\"",
            lambda: "cd d && pwd | sed 's,.*/,,'; cd ..",
            lambda: "cd no-such 2>/dev/null; echo $?",
            lambda: f"IFS=: ; echo ${name}; unset IFS",
            lambda: "command -v echo >/dev/null && echo has",
            lambda: "type no_such_thing >/dev/null 2>&1 || echo none",
            lambda: f"readonly R{self.chance.randrange(9)}=1",
            lambda: (
                f"while getopts ab:c o {self.pick(OPTIONS)} 2>/dev/null; "
                f'do echo "$o ${{OPTARG-}}"; done; OPTIND=1'
            ),
            lambda: f"{self.pick(['true', 'false', ':', '! true', '! false'])}; echo $?",
            lambda: "umask",
            lambda: f"sh -c 'exit {self.pick(['0', '2', '7'])}'; echo $?",
            lambda: f"sh -c 'echo $0 $# \"$1\"' zero {self.words()}",
            lambda: f'set -- {self.words()}; for v; do echo "<$v>"; done',
            lambda: (
                f"echo 'echo sourced {self.pick(LITERALS)} $1; {name}=from' > lib.sh; "
                f". ./lib.sh; echo ${name}"
            ),
            lambda: (
                f"(trap 'echo trapped' {self.pick(['EXIT', '0'])}; exit {self.pick('05')}); echo $?"
            ),
            lambda: "sh -c 'kill -9 $$'; echo $?",
            lambda: "sh -c 'trap \"echo term; exit 4\" TERM; kill -TERM $$; echo after'; echo $?",
        )

    def test(self) -> str:
        value = self.word_for_value()
        return self.one_of(
            lambda: f"{value} = {self.word_for_value()}",
            lambda: f"{value} != {self.word_for_value()}",
            lambda: f"-n {value}",
            lambda: f"-z {value}",
            lambda: f"$i {self.pick(['-eq', '-ne', '-lt', '-le', '-gt', '-ge'])} {self.number()}",
            lambda: f"$(({self.expression()})) -gt {self.number()}",
            lambda: f"{self.pick(['-e', '-f', '-d', '-s', '-r', '-x'])} {self.pick(FILES)}",
            lambda: f"! -f {self.pick(FILES)}",
            lambda: f"{value}",
            lambda: f"$i -gt 1 {self.pick(['-a', '-o'])} -n {value}",
        )

    def condition(self) -> str:
        return self.one_of(
            lambda: f"[ {self.test()} ]",
            lambda: f"[ {self.test()} ]",
            lambda: f"test {self.test()}",
            lambda: self.pick(["true", "false"]),
            lambda: f"! [ {self.test()} ]",
            lambda: f"[ {self.test()} ] {self.pick(['&&', '||'])} [ {self.test()} ]",
            lambda: f"echo {self.word()} | grep -q {self.pick(['a', '^f', 'o$', '[0-9]'])}",
        )

    def if_(self) -> str:
        text = f"if {self.condition()}; then\n{self.block()}\n"
        if self.happens(0.3):
            text += f"elif {self.condition()}; then\n{self.block()}\n"
        if self.happens(0.5):
            text += f"else\n{self.block()}\n"
        return text + "fi"

    def looped(self) -> str:
        before = self.is_in_loop
        self.is_in_loop = True
        body = self.block()
        self.is_in_loop = before
        return body

    def for_(self) -> str:
        name = self.pick(["v", "w", *NAMES])
        values = self.one_of(
            self.words,
            lambda: "1 2 3",
            lambda: "$(seq 3)",
            lambda: "f*",
            lambda: '"$@"',
            lambda: "$c",
        )
        output = self.new_file()
        tail = self.pick(["", "", " | sort", f" > {output}; cat {output}"])
        return f'for {name} in {values}; do\necho "{name} ${name}"\n{self.looped()}\ndone{tail}'

    def while_(self) -> str:
        self.counters += 1
        name = f"count{self.counters}"
        word, test = self.chance.choice([("while", "-lt"), ("until", "-ge")])
        step = f"{name}=$(({name} + 1))"
        return (
            f"{name}=0\n{word} [ ${name} {test} {self.pick(['1', '2', '3'])} ]; do\n{step}\n"
            f"{self.looped()}\ndone"
        )

    def leave_loop(self) -> str:
        word = self.pick(["break", "continue", "break 2", "continue 2"])
        return f"if {self.condition()}; then {word}; fi"

    def case(self) -> str:
        items = []
        for _ in range(self.chance.randrange(1, 4)):
            pattern = self.pick(PATTERNS)
            body = self.one_of(self.block, self.printing, lambda: "")
            items.append(f"{self.pick(['', '('])}{pattern}) {body}\n;;")
        if self.happens(0.5):
            items.append(f"*) {self.printing()}")
        body = "\n".join(items)
        return f"case {self.word_for_value()} in\n{body}\nesac"

    def function(self) -> str:
        name = f"fn{len(self.functions)}"
        before, self.is_in_function = self.is_in_function, True
        loop, self.is_in_loop = self.is_in_loop, False
        names, self.functions = self.functions, []
        body = self.block()
        self.is_in_function = before
        self.is_in_loop = loop
        self.functions = names
        text = f'{name}() {{\necho "in {name} $# $1"\n{body}\n}}'
        if self.depth == 0:
            self.functions.append(name)
        return f'{text}\n{name} {self.words()}; echo "is $?"'

    def call(self) -> str:
        name = self.pick(self.functions)
        return self.one_of(
            lambda: f"{name} {self.words()}",
            lambda: f"{name} | wc -l | tr -d ' '",
            lambda: f"if {name} a; then echo fine; else echo bad; fi",
            lambda: f"{self.pick(NAMES)}={self.pick(LITERALS)} {name}",
            lambda: f'echo "$({name} {self.word()})"',
        )

    def grouped(self) -> str:
        return self.one_of(
            lambda: f"( {self.block()})",
            lambda: f"{{ {self.block()}\n}}",
            lambda: f"( {self.block()}) | cat -n | tr -d ' '",
            lambda: self.group_in_file(self.new_file()),
            lambda: f"! {{ {self.block()}\n}}; echo $?",
        )

    def read_loop(self) -> str:
        text = self.escaped_text()
        flag = self.pick(["", "-r "])
        names = self.pick(["line", "x y", "x y z"])
        shown = " ".join(f"[${name}]" for name in names.split())
        ifs = self.pick(["", "", "IFS= ", "IFS=: ", "IFS=' ' "])
        return f"printf '{text}' | while {ifs}read {flag}{names}; do echo \"{shown}\"; done"

    def escaped_text(self) -> str:
        """Return a text as a format of ``printf``."""
        return self.pick(TEXTS).replace("\\", "\\\\").replace("\n", "\\n")

    def heredoc(self) -> str:
        end = self.pick(["EOF", "END"])
        is_quoted = self.happens(0.3)
        dash = self.pick(["", "", "-"])
        lines = [self.quoted_text().replace("`", "") for _ in range(self.chance.randrange(1, 4))]
        tab = "\t" if dash else ""
        text = "".join(f"{tab}{line}\n" for line in lines)
        opening = f"'{end}'" if is_quoted else end
        program = self.pick(
            ["cat", "cat -n | tr -d ' '", "wc -l | tr -d ' '", "sort", "grep -c ''"]
        )
        first, bar, rest = program.partition(" | ")
        return f"{first} <<{dash}{opening}{bar}{rest}\n{text}{tab}{end}"

    def job(self) -> str:
        return self.one_of(
            lambda: f"{{ echo {self.pick(LITERALS)}; exit {self.pick('03')}; }} & wait $!; echo $?",
            lambda: f"(echo {self.pick(LITERALS)} > bg) & wait; cat bg",
            lambda: f"sh -c 'exit {self.pick(['0', '6'])}' & wait $!; echo \"job $?\"",
            lambda: "sleep 0.01 & wait; echo $?",
        )

    def pipeline(self) -> str:
        source = self.one_of(
            lambda: f"printf '{self.escaped_text()}'",
            lambda: f"seq {self.pick(['3', '5', '2 6', '10', '1 2 9'])}",
            lambda: f"echo {self.words()}",
            lambda: f"cat {self.pick(['f1', 'f2', 'data.txt', 'f1 f2'])}",
        )
        filters = [
            "sort", "sort -r", "sort -n", "sort -u", "wc -l | tr -d ' '", "head -n 2", "tail -n 1",
            "tr a-z A-Z", "tr -d o", "cut -d: -f1", "cut -c1-3", "grep a", "grep -v a", "grep -c o",
            "sed 's/a/X/'", "sed -n 1p", "uniq -c | tr -s ' '", "cat", f"tee {self.new_file()}",
            "rev", "head -1",
            "awk '{print $1}'", "awk '{s += $1} END {print s}'", "grep -q o", "tail -n +2",
            "while read -r q; do echo \"<$q>\"; done", "wc -c | tr -d ' '",
            "tr -s ' ' '\\n'", "nl | tr -d ' '",
        ]  # fmt: skip
        count = self.chance.randrange(1, 4)
        stages = [self.pick(filters) for _ in range(count)]
        return " | ".join([source, *stages])

    def with_files(self) -> str:
        name = self.pick(["f1", "f2", "new", "d/inner", "data.txt"])
        return self.one_of(
            lambda: f"echo {self.words()} > {name}; cat {name}",
            lambda: f"echo {self.word_for_value()} >> {name}; wc -l < {name} | tr -d ' '",
            lambda: f"cat {self.pick(FILES)} 2>/dev/null; echo $?",
            lambda: "cat no-such 2>&1 >/dev/null | wc -l | tr -d ' '",
            lambda: f"{{ echo one; echo two >&2; }} 2>/dev/null > {name}; cat {name}",
            lambda: f"[ -f {name} ] && rm {name}; ls",
            lambda: f"mkdir -p e/g && touch e/g/{self.pick(['x', 'y'])}; ls e/g; echo e/*/*",
            lambda: f"exec 3> {name}; echo three >&3; exec 3>&-; cat {name}",
            lambda: f'while read -r l; do echo "l=$l"; done < {self.pick(FILES)}',
            lambda: "cp f1 cp1; mv cp1 mv1; cat mv1; ls mv1 cp1 2>/dev/null; echo $?",
            lambda: f": > {name}; [ -s {name} ] || echo empty",
            lambda: "echo err >&2; echo out 2>/dev/null",
            lambda: f'read x y < {self.pick(FILES)}; echo "$?:$x:$y"',
            lambda: "sh ./no-such 2>/dev/null; echo $?",
            lambda: f"basename a/b/{self.pick(['c.txt', 'd'])} .txt; dirname a/b/c",
            lambda: f"test -e {name} -a -d d; echo $?",
            lambda: f"printf 'x%sy\\n' {self.words()} | tee t1 > t2; cat t1 t2",
        )

    def and_or(self) -> str:
        count = self.chance.randrange(1, 4)
        parts = [self.one_of(self.condition, self.printing, self.condition)]
        for _ in range(count):
            parts.append(self.pick([" && ", " || "]))
            parts.append(self.one_of(self.printing, self.condition, self.pipeline))
        return "".join(parts)


def write_script(seed: int, *, is_bash: bool = False) -> str:
    """Return the script of a seed."""
    return ScriptWriter(seed, is_bash=is_bash).script()
