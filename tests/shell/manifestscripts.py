"""Random scripts as the authors of manifests write them: one seed is one script.

They use programs with their usual options, here-documents, loops, functions, traps and background
jobs. A script ends, prints the same in every shell, and reads nothing but what it has made itself.
"""

from __future__ import annotations

from tests.shell.scripts import LITERALS, NAMES, ScriptWriter

CONFIGS = (
    "host=db\nport=5432\n# comment\n\nuser=app\n",
    "10 apple red\n2 pear green\n33 fig red\n2 kiwi green\n",
    "a:1:x\nb:20:y\nc:3:x\n",
    "INFO start\nWARN disk 81%\nERROR code=7\nINFO stop\n",
    "one two  three\n four\n\nfive six\n",
    "Zeta\nalpha\nbeta\nAlpha\nalpha\n",
)
SOURCES = (
    "seq 7", "seq 3 -1 1", "seq -w 8 11", "seq -s, 4", "seq 1 2 9", "seq 0 0.5 2",
    "seq -f 'n%03g' 3",
    "echo 'b a c a' | tr ' ' '\\n'", "printf '%s\\n' x10 x9 x100", "printf 'a,b,c\\n1,2,3\\n'",
    "find d f1 f2 -type f | sort", "find d -name 'in*'",
    "find . -name '*.txt' -o -name 'f?' | sort",
    "find . -maxdepth 1 -type d", "ls d", "ls -1 d", "echo $((6 * 7))", "cat f1 f2", "cat conf",
    "cat conf", "cat conf", "grep . conf", "sort conf", "date -u -d @0 +%Y-%m-%dT%H:%M:%SZ",
    "date -u -d @1700000000 '+%a %d %b %j %H %I %p %u'", "date -u -d '2024-02-28 12:00:00' +%s",
    "basename /usr/lib/x.tar.gz .gz", "dirname /usr/lib/x", "expr 7 % 4 + 2 \\* 3",
    "expr hello : 'h\\(.*\\)o'", "expr length hello", "expr substr hello 2 3", "expr 3 '<' 12",
    "echo aGVsbG8K | base64 -d", "printf 'hello' | base64", "env A=1 B=2 sh -c 'echo $A$B'",
    "head -n 1 data.txt", "echo 'x y' | read a b; echo none",
)  # fmt: skip
FILTERS = (
    "cut -d' ' -f2-", "cut -d= -f2", "cut -d: -f1,3", "cut -c2-4", "cut -s -d= -f1", "cut -d, -f2",
    "tr '[:lower:]' '[:upper:]'", "tr -cd 'a-z0-9\\n'", "tr -d '\\n'", "tr -s ' '", "tr ' ' '\\n'",
    "tr 'a-c' 'x-z'", "tr -c '[:alnum:]\\n' '_'",
    "sed 's/[0-9][0-9]*/N/g'", "sed -e '/^#/d' -e '/^$/d'", "sed -n '/a/p'", "sed '1d;$d'",
    "sed 's/\\(.*\\)=\\(.*\\)/\\2=\\1/'", "sed -E 's/([a-z]+)/<\\1>/g'", "sed 's|/|_|g'",
    "sed '2q'", "sed -n '2,3p'", "sed 'y/abc/xyz/'", "sed 's/^/> /'", "sed '$!d'",
    "sed '1!G;h;$!d'",
    "sed -n '$='", "sed '/a/,/e/s/^/+/'", "sed 's/a/A/2'", "sed '2i\\inserted'", "sed '$a\\end'",
    "sed -E 's/(.)(.)/\\2\\1/'", "sed 's/.*/[&]/'", "sed 's/e/E/I'", "sed '/r/!s/$/!/'",
    "awk -F: '{print $NF, NF}'", "awk 'NR % 2'", "awk '{$1 = \"\"; print}'",
    "awk '{print NR\": \"$0}'",
    "awk '/a/ {n++} END {print n + 0}'", "awk 'length > 3 {printf \"%-8s|%3d\\n\", $1, NR}'",
    "awk 'BEGIN {FS = \"=\"; OFS = \"-\"} {print $1, $2}'", "awk '{print toupper($1), length($0)}'",
    "awk '{c[$1]++} END {for (k in c) print k, c[k]}' | sort",
    "awk '{s += $1} END {print s / (NR + 1)}'",
    "awk '{gsub(/a/, \"A\"); print}'", "awk -v n=2 'NR == n {print; exit}'",
    "awk '{print substr($0, 2, 3)}'", "awk '{n = split($0, p, \"=\"); print n, p[1]}'",
    "awk '$1 ~ /^[a-z]/ {print $1}'", "awk 'NR == 1 {next} {print $NF}'", "awk '!seen[$0]++'",
    "awk 'END {print NR, NF}'", "awk '{printf \"%s \", $1} END {print \"\"}'",
    "awk '{for (i = NF; i > 0; i--) printf \"%s%s\", $i, (i > 1 ? \" \" : \"\\n\")}'",
    "awk '{if ($1 > m) m = $1} END {print m}'",
    "awk '{print index($0, \"a\"), match($0, /[0-9]+/)}'",
    "sort", "sort -k2", "sort -k2,2 -k1n", "sort -t: -k2n", "sort -rn", "sort -u", "sort -f",
    "sort -V",
    "sort -t= -k1,1r", "sort -n -k1,1 -s", "sort | uniq", "sort | uniq -c | awk '{print $1, $2}'",
    "sort | uniq -d", "sort | uniq -u", "sort -f | uniq -i",
    "xargs", "xargs -n1", "xargs -n 2 echo", "xargs -I{} echo '[{}]'", "xargs printf '<%s>\\n'",
    "xargs -L1 echo +", "xargs -r echo got",
    "head -n 2", "head -c 10", "head -n -1", "tail -n 2", "tail -c 5", "tail -n +2", "head -2",
    "tail -1",
    "grep -n a", "grep -c .", "grep -E '^[a-z]+$'", "grep -i A", "grep -o '[0-9]*'", "grep -w a",
    "grep -vE '^#|^$'", "grep -A1 b", "grep -B1 e", "grep -F .", "grep -oE '[a-z]+='", "grep -q a",
    "grep -x one", "grep -e a -e 1", "grep -m1 a", "grep -l a", "grep -s zzz",
    "wc -l", "wc -w", "wc -c", "wc", "tac", "paste -sd,", "paste - -", "nl -ba", "nl", "rev",
    "base64", "base64 | base64 -d", "base64 -w 20", "md5sum", "sha256sum | cut -c1-8", "sha1sum",
    "od -An -c", "od -An -tx1", "od -c", "od -An -tu1", "od -b | head -n 1", "cat -A", "cat -n",
    "cat -b", "cat -s", "cat -E", "tee copy", "tee copy | wc -c",
    "while read -r line; do echo \"got $line\"; done",
    "while IFS== read -r key value; do echo \"$key is $value\"; done",
    "{ read -r first; echo \"first: $first\"; cat; }", "(cat; echo end)",
    "while read -r a b; do case $a in [0-9]*) echo n $b;; *) echo s $a;; esac; done",
)  # fmt: skip
FORMATS = (
    "'%s\\n' \"$@\"", "'%5d|%-5d|%05d\\n' 42 42 42", "'%x %X %o %#x\\n' 255 255 8 255",
    "'%s=%s\\n' a 1 b 2", "'%.3s|%10s|%-10s|\\n' abcdef right left", "'%c%c\\n' hello world",
    "'%b' 'tab\\there\\n'", "'%d%%\\n' 50", "'%+d % d\\n' 5 5",
    "'%.2f %5.1f %e\\n' 3.14159 2.5 1000",
    "'%s\\n'", "'no newline'", "'%*d|\\n' 6 42", "'%i %u\\n' 7 8", "'%g\\n' 0.0001", "'\\101\\n'",
    "'%s %d\\n' x 0x1f", "'%s\\n' -n", "-- '%s\\n' dash", "'%03d\\n' 5 6 7",
    "\"%s\\n\" \"a  b\"", "'%d\\n' \"'A\"", "'%5s%%\\n' 10", "'\\e[0m' | od -c",
)  # fmt: skip
TESTS = (
    '[ "$a" = foo ]', '[ -z "$b" ]', '[ -n "$b" ]', "[ $i -gt 2 ]", "[ $i -le 5 -a $j -ge 2 ]",
    '[ "$a" != "$b" -o -f f1 ]', "test -f f1", "test ! -e nope", "[ -d d ]", "[ -s f1 ]",
    "[ -r f1 ]",
    "[ -x f1 ]", "[ ! -f f2 ]", "[ f1 -ef ./f1 ]", "test -L f1", "[ -t 0 ]",
    '[ "$#" -eq 0 ]', "[ x ]", '[ "" ]', '[ \\( a = b \\) -o \\( a = a \\) ]', "test",
    "[ -e d/inner ]",
    "grep -q host conf", "! grep -q nope conf", "cmp -s f1 f2", "true", "false",
    "command -v sed >/dev/null",
    "[ $((i % 2)) -eq 1 ]", 'case "$a" in f*) true;; *) false;; esac', "expr $i '>' 2 >/dev/null",
)  # fmt: skip
EXPANSIONS = (
    "${a:-none}", "${b:=made}", "${c:+set}", "${a#f}", "${a##*o}", "${path##*/}", "${path%/*}",
    "${path%%.*}", "${path#*/}", "${#path}", "${path%.gz}", "${1:-first}", "${i}${j}", "$((i + j))",
    "${a-}", "${none:-$(echo sub)}", "${a:-${b:-nested}}", "`echo tick`",
    "${a%\"${a#?}\"}", "${path%%/*}", "${a:+${b:-x}}", "$((j << 2 | 1))", "$((-7 / 2))", "$((010))",
)  # fmt: skip


class ManifestWriter(ScriptWriter):
    """Writes one script."""

    def script(self) -> str:
        """Return a script."""
        lines = []
        if self.happens(0.3):
            lines.append(self.pick(["set -e", "set -u", "set -eu", "set -f"]))
        if self.is_bash and self.happens(0.2):
            lines.append(self.pick(["set -o pipefail", "set -euo pipefail"]))
        if self.happens(0.2):
            lines.append(f"trap 'echo bye $?' {self.pick(['EXIT', '0'])}")
        lines.append("i=1 j=5 n0=0 a=foo path=/srv/data/app.tar.gz")
        lines.append(f"cat > conf <<'EOF'\n{self.pick(CONFIGS)}EOF")
        for _ in range(self.chance.randrange(2, 7)):
            lines.append(self.command())
        if self.happens(0.2):
            lines.append(f"exit {self.pick(['0', '1', '3', '$?', '$i'])}")
        return "\n".join(lines) + "\n"

    def command(self) -> str:
        """Return a command."""
        makers = [
            self.stream, self.stream, self.stream, self.format, self.shown, self.kept,
            self.redirected, self.files_changed, super().command,
        ]  # fmt: skip
        if self.depth < 2:
            makers += [
                self.choice, self.loop, self.counted, self.cases, self.document, self.background,
                self.trapped, self.defined, self.nested, self.guarded, self.piped_group,
            ]  # fmt: skip
        return self.one_of(*makers)

    def pipeline(self) -> str:
        """Return programs in a row."""
        return self.stream()

    def stream(self) -> str:
        count = self.chance.randrange(1, 4)
        stages = [self.pick(FILTERS) for _ in range(count)]
        return " | ".join([self.pick(SOURCES), *stages])

    def format(self) -> str:
        return f"printf {self.pick(FORMATS)}"

    def shown(self) -> str:
        count = self.chance.randrange(1, 4)
        quoted = " ".join(self.pick(EXPANSIONS) for _ in range(count))
        return self.one_of(
            lambda: f'echo "{quoted}"',
            lambda: f"echo {quoted}",
            lambda: f'echo "result: $({self.stream()})"',
            lambda: f"echo status $?; {self.pick(TESTS)}; echo $?",
        )

    def kept(self) -> str:
        name = self.pick(NAMES)
        return self.one_of(
            lambda: f'{name}=$({self.stream()}); echo "{name}: ${name}"',
            lambda: f'{name}="{self.pick(EXPANSIONS)}"; echo ${name}',
            lambda: f"i=$((i {self.pick('+-*')} {self.pick('123')})); echo $i",
            lambda: f'set -- $({self.stream()}); echo "$# ${{1:-}} ${{2:-}}"',
            lambda: f"export {name}={self.pick(LITERALS)}; env | grep '^{name}='",
            lambda: ': "${a:=default}" "${d:=other}"; echo "$a $d"',
            lambda: f'{name}=$(cat <<EOF\n$i and {self.pick(EXPANSIONS)}\nEOF\n); echo "${name}"',
            lambda: 'IFS=,; set -- 1,2,3; for v in $1; do echo $v; done; echo "$*"; unset IFS',
        )

    def redirected(self) -> str:
        name = self.new_file()
        return self.one_of(
            lambda: f"{self.stream()} > {name} 2>&1; cat {name}",
            lambda: f"{{ echo out; echo err >&2; }} > {name} 2>&1; wc -l < {name}",
            lambda: f"ls nope 2>/dev/null || echo missing; echo kept >> {name}; cat {name}",
            lambda: f"( {self.stream()} ) 2>&1 | head -n 3",
            lambda: f"exec 4> {name}; {self.stream()} >&4; exec 4>&-; cat {name}",
            lambda: f"{{ {self.stream()}; }} > {name}; tail -n 1 {name}",
            lambda: f'while read -r x rest; do echo "$rest/$x"; done < conf > {name}; cat {name}',
            lambda: "cat nope conf 2>/dev/null | wc -l; echo >&2 note",
            lambda: f"echo hidden > /dev/null; echo 1 > {name}; echo 2 >> {name}; cat < {name}",
        )

    def files_changed(self) -> str:
        name = self.new_file()
        return self.one_of(
            lambda: f"mkdir -p {name}/x/y && touch {name}/x/y/z && find {name} | sort",
            lambda: f"cp conf {name}; sed -i 's/a/A/' {name}; cat {name}",
            lambda: f"cp -r d {name}; ls {name}; rm -rf {name}; ls {name} 2>/dev/null || echo gone",
            lambda: f"echo x > {name}; mv {name} d/; ls d; rm d/{name}",
            lambda: f"ln -s conf {name}; readlink {name}; cat {name} | head -n 1",
            lambda: f"touch {name}; chmod 640 {name}; stat -c '%a %s' {name}",
            lambda: f"for f in f1 f2 nope; do [ -f $f ] && wc -c < $f; done; echo {name}",
            lambda: f"tar cf {name}.tar d f1 && tar tf {name}.tar",
            lambda: "find . -name 'f?' -exec basename {} \\; | sort",
            lambda: "find d -type f -exec cat {} +; find . -name inner -exec dirname {} \\;",
            lambda: f"md5sum f1 > {name}; md5sum -c {name}",
            lambda: f"diff f1 f2 > {name}; echo $?; cmp f1 f1 && echo same",
            lambda: f"split=$(wc -l < conf); head -n $((split / 2)) conf > {name}; cat {name}",
            lambda: (
                "dir=$(mktemp -d); echo t > $dir/t; cat $dir/t; rm -r $dir; "
                f"[ -d $dir ] || echo {name}"
            ),
        )

    def choice(self) -> str:
        return (
            f"if {self.pick(TESTS)}; then\n{self.block()}\n"
            f"elif {self.pick(TESTS)}; then\n{self.block()}\nelse\n{self.block()}\nfi"
        )

    def loop(self) -> str:
        counter = f"l{self.depth}"
        leave = self.pick(["", "", "break\n", f"[ ${counter} = 2 ] && continue\n"])
        words = self.pick(["1 2 3", "a b", "$(seq 3)", "f*", "*.txt d/*", '"$@"', "$a $b x"])
        return f"for {counter} in {words}; do\n{leave}{self.block()}\ndone"

    def counted(self) -> str:
        counter = f"w{self.depth}"
        kind, test = self.pick(["while -lt", "until -ge"]).split()
        return (
            f"{counter}=0\n{kind} [ ${counter} {test} 3 ]; do\n{counter}=$(({counter} + 1))\n"
            f"{self.block()}\nsleep 0\ndone"
        )

    def cases(self) -> str:
        word = self.pick(["$a", "$i", '"$path"', "$(uname -s)", '"${b:-}"', "x.yaml", '"$1"'])
        return (
            f"case {word} in\n  /srv/*|foo) {self.block()}\n;;\n  [0-9]*)\n{self.block()}\n;;\n"
            f"  *.y?ml) echo yaml;;\n  '') echo empty;;\n  *) echo other; {self.stream()};;\nesac"
        )

    def document(self) -> str:
        name = self.new_file()
        quote = self.pick(["", "'"])
        text = f'name: {self.pick(EXPANSIONS)}\nlist:\n  - $i\n  - "$a"\n'
        return self.one_of(
            lambda: f"cat <<{quote}EOF{quote} > {name}\n{text}EOF\ncat {name}",
            lambda: f"cat <<-{quote}END{quote} | {self.pick(FILTERS)}\n\tone $i\n\t\ttwo\n\tEND",
            lambda: f'while read -r k v; do echo "$v:$k"; done <<{quote}EOF{quote}\n{text}EOF',
            lambda: f"sh <<{quote}EOF{quote}\necho inner {self.pick(EXPANSIONS)}\nEOF",
            lambda: "sh -s x y <<'EOF'\nread line\n: next line\necho \"$line $1 $#\"\nEOF",
            lambda: (
                f"cat > {name}.sh <<'EOF'\n#!/bin/sh\necho \"$0: $*\" | sed 's,.*/,,'\n"
                "exit 3\nEOF\n"
                f"sh {name}.sh a 'b c'; echo $?"
            ),
        )

    def background(self) -> str:
        name = self.new_file()
        return self.one_of(
            lambda: f"({self.stream()}) > {name} & wait; cat {name}",
            lambda: f"sleep 0 & p=$!; wait $p; echo $?; echo {name}",
            lambda: (
                'pids=; for n in 1 2 3; do (exit $n) & pids="$pids $!"; done; '
                "for p in $pids; do wait $p; echo $?; done"
            ),
            lambda: f"{{ sleep 0; echo late > {name}; }} & wait $!; cat {name}",
            lambda: "sh -c 'exit 5' & wait $! || echo failed $?",
            lambda: "sleep 100 & p=$!; sleep 0.05; kill $p; wait $p; echo $?",
            lambda: (
                f"rm -f {name}; (trap 'echo term; exit 9' TERM; echo go > {name}; "
                "while :; do sleep 0.01; done) & p=$!; "
                f"while [ ! -s {name} ]; do sleep 0.01; done; kill $p; wait $p; echo $?"
            ),
            lambda: "kill -0 $$ && echo alive",
            lambda: "timeout 5 sh -c 'echo in time'; timeout 0.05 sleep 5; echo $?",
        )

    def trapped(self) -> str:
        return self.one_of(
            lambda: f"(trap 'echo cleanup' EXIT; {self.stream()}; exit {self.pick('03')}); echo $?",
            lambda: "sh -c \"trap 'echo usr1' USR1; kill -USR1 \\$\\$; echo after\"",
            lambda: "sh -c \"trap '' TERM; kill -TERM \\$\\$; echo ignored\"; true",
            lambda: "sh -c 'trap \"echo int; exit 2\" INT; kill -INT $$; sleep 1'; echo $?",
            lambda: "sh -c 'kill -KILL $$'; echo $?",
            lambda: "f() { trap 'echo leaving' EXIT; return 3; }; (f; echo $?)",
        )

    def defined(self) -> str:
        name = self.pick(["log", "retry", "main", "check"])
        return self.one_of(
            lambda: f"{name}() {{ echo \"[{name}] $*\"; {self.stream()}; }}\n{name} a 'b c'",
            lambda: (
                f"{name}() {{\n{self.block()}\nreturn {self.pick('024')}\n}}\n{name} x || echo $?"
            ),
            lambda: (
                "fact() { [ $1 -le 1 ] && echo 1 || echo $(($1 * $(fact $(($1 - 1))))); }; fact 5"
            ),
            lambda: f"{name}() {{ local a=in; b=out; echo $a $1; }}; {name} z; echo $a $b",
            lambda: (
                'retry() { n=0; until "$@"; do n=$((n + 1)); [ $n -ge 3 ] && return 1; '
                "sleep 0; done; }; "
                "retry false; echo $? $n; retry true; echo $? $n"
            ),
            lambda: (
                f"{name}() {{ while [ $# -gt 0 ]; do case $1 in -v) echo v;; --*=*) echo ${{1#*=}};; *) echo arg $1;; esac; shift; done; }}; "  # noqa: E501
                f"{name} -v --x=7 last"
            ),
            lambda: f"{name}() {{ cat | tr a-z A-Z; }}; echo through | {name}",
        )

    def nested(self) -> str:
        return self.one_of(
            lambda: f"(cd d && {self.stream()}); pwd | sed 's,.*/,,' | wc -l",
            lambda: f"{{ {self.block()}\n}} | {self.pick(FILTERS)}",
            lambda: f"({self.block()}\n) > /dev/null; echo $?",
            lambda: f"sh -c 'echo \"$0-$1\"; exit {self.pick('06')}' zero one; echo $?",
            lambda: f'eval "echo {self.pick(LITERALS)}; i=7"; echo $i',
            lambda: f'x=$(echo $(echo $({self.stream()}))); echo "$x"',
            lambda: (
                "(set -e; false; echo no); echo $?; (set -u; echo $unset_one) 2>/dev/null; echo $?"
            ),
        )

    def guarded(self) -> str:
        return self.one_of(
            lambda: f"{self.pick(TESTS)} && {self.stream()} || echo alternative",
            lambda: f"{self.stream()} && echo fine || {{ echo bad; }}",
            lambda: f"! {self.stream()}; echo $?",
            lambda: f"if ! {self.stream()}; then echo no; fi",
            lambda: f"{self.pick(TESTS)} || {{ {self.block()}\n}}",
            lambda: "(echo ${nothing:?is not set}) 2>/dev/null; echo $?",
        )

    def piped_group(self) -> str:
        return (
            f'{self.stream()} | while read -r x y; do\n[ -n "$x" ] || continue\n'
            f'echo "<$x|$y>"\ni=$((i + 1))\ndone; echo $i'
        )


def manifest_script(seed: int, *, is_bash: bool = False) -> str:
    """Return the script of a seed."""
    return ManifestWriter(seed, is_bash=is_bash).script()
