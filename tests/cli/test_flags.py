"""Flags, parsed as pflag parses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from kubepy.api.values.goformat import parse_duration
from kubepy.cli.commands import COMMANDS
from kubepy.cli.runtime.command import Entry, load, walk
from kubepy.cli.runtime.flags import Flag, FlagSyntaxError, HelpRequested, Parsed, Parser
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import duration_flag as duration
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.options import GLOBAL_FLAGS

FLAGS = [
    boolean("watch", "w"),
    boolean("all", "A"),
    string("output", "o"),
    string("dry-run", default="none", no_value="unchanged"),
    integer("replicas"),
    duration("timeout"),
    strings("filename", "f"),
    string_array("for"),
    string("selector", "l"),
    integer("port", bits=32),
]


def parse(*words: str) -> Parsed:
    return Parser(FLAGS).parse(words)


def test_value_follows_its_flag_or_equals_sign() -> None:
    assert parse("--output", "yaml").values["output"] == "yaml"
    assert parse("--output=yaml").values["output"] == "yaml"
    assert parse("-o", "yaml").values["output"] == "yaml"
    assert parse("-oyaml").values["output"] == "yaml"
    assert parse("-o=yaml").values["output"] == "yaml"


def test_bool_never_takes_next_word() -> None:
    parsed = parse("--watch", "false")
    assert (parsed.values["watch"], parsed.args) == (True, ["false"])
    assert parse("--watch=false").values["watch"] is False


def test_flag_with_value_of_its_own_never_takes_next_word() -> None:
    parsed = parse("--dry-run", "client")
    assert (parsed.values["dry_run"], parsed.args) == ("unchanged", ["client"])
    assert parse("--dry-run=client").values["dry_run"] == "client"


def test_short_flags_stand_together_and_last_takes_value() -> None:
    values = parse("-wAo", "yaml").values
    assert (values["watch"], values["all"], values["output"]) == (True, True, "yaml")


def test_values_of_slice_are_split_at_commas_and_add_up() -> None:
    assert parse("-f", "a,b", "--filename=c").values["filename"] == ["a", "b", "c"]
    assert parse("-f", '"a,b",c').values["filename"] == ["a,b", "c"]
    assert parse("-f", '"say ""hi""",').values["filename"] == ['say "hi"', ""]
    assert parse("--for=a,b", "--for", "c").values["for"] == ["a,b", "c"]


def test_negative_number_is_value() -> None:
    assert parse("--replicas", "-1").values["replicas"] == -1
    assert parse("--replicas=0x10").values["replicas"] == 16


def test_words_after_double_dash_are_arguments() -> None:
    parsed = parse("a", "--", "-w", "b")
    assert (parsed.args, parsed.dash, parsed.values["watch"]) == (["a", "-w", "b"], 1, False)


def test_lone_dash_is_word() -> None:
    assert parse("-").args == ["-"]
    assert parse("-f", "-").values["filename"] == ["-"]


def test_underscores_in_names_are_dashes() -> None:
    assert parse("--dry_run=server").values["dry_run"] == "server"


def test_changed_reports_given_flags() -> None:
    assert parse("--watch=false", "-l", "a=b", "-w").flags_set == [
        ("watch", "false"),
        ("selector", "a=b"),
        ("watch", "true"),
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--foo"], "unknown flag: --foo"),
        (["--foo=1"], "unknown flag: --foo"),
        (["-Z"], "unknown shorthand flag: 'Z' in -Z"),
        (["-wZo"], "unknown shorthand flag: 'Z' in -Zo"),
        (["--output"], "flag needs an argument: --output"),
        (["-wo"], "flag needs an argument: 'o' in -o"),
        (["--=x"], "bad flag syntax: --=x"),
        (
            ["--watch=maybe"],
            'invalid argument "maybe" for "-w, --watch" flag: strconv.ParseBool: parsing "maybe": '
            "invalid syntax",
        ),
        (
            ["--replicas=1.5"],
            'invalid argument "1.5" for "--replicas" flag: strconv.ParseInt: parsing "1.5": '
            "invalid syntax",
        ),
        (
            ["--timeout=5"],
            'invalid argument "5" for "--timeout" flag: time: missing unit in duration "5"',
        ),
        (
            ["--port=2147483648"],
            'invalid argument "2147483648" for "--port" flag: strconv.ParseInt: parsing '
            '"2147483648": '
            "value out of range",
        ),
        (
            ['--filename=a"b'],
            r'invalid argument "a\"b" for "-f, --filename" flag: parse error on line 1, column 2: '
            'bare " in non-quoted-field',
        ),
        (
            ["-f", '"a"b'],
            r'invalid argument "\"a\"b" for "-f, --filename" flag: parse error on line 1, column '
            r"3: "
            'extraneous or missing " in quoted-field',
        ),
        (
            ["-f", '"a'],
            r'invalid argument "\"a" for "-f, --filename" flag: parse error on line 1, column 3: '
            'extraneous or missing " in quoted-field',
        ),
        (
            ["--help=x"],
            'invalid argument "x" for "-h, --help" flag: strconv.ParseBool: parsing "x": invalid '
            "syntax",
        ),
        (["--help", "--foo"], "unknown flag: --foo"),
    ],
)
def test_flag_errors_are_pflags(words: list[str], why: str) -> None:
    with pytest.raises(FlagSyntaxError) as raised:
        parse(*words)
    assert str(raised.value) == why


def test_help_is_asked_for_by_either_name() -> None:
    for word in ("-h", "--help", "-wh"):
        with pytest.raises(HelpRequested):
            parse(word)
    assert parse("--help=false", "a").args == ["a"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("1.5s", 1.5),
        ("2m", 120),
        ("1h30m", 5400),
        ("300ms", 0.3),
        ("-1s", -1),
        (".5s", 0.5),
    ],
)
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'time: invalid duration ""'),
        ("x", 'time: invalid duration "x"'),
        ("5x", 'time: unknown unit "x" in duration "5x"'),
        ("1m5", 'time: missing unit in duration "1m5"'),
    ],
)
def test_durations_that_are_none(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"^time: ") as raised:
        parse_duration(text)
    assert str(raised.value) == why


# --- kubectl's flags ------------------------------------------------------------------------------

GOLDEN = Path(__file__).parents[1] / "golden" / "kubectl-flags.txt"


def golden() -> Iterator[tuple[str, dict[str, str]]]:
    for line in GOLDEN.read_text().splitlines():
        if not line.startswith("#"):
            path, _, flags = line.partition(": ")
            yield path, dict(flag.split("=", 1) for flag in flags.split())


def shown(flags: Iterable[Flag]) -> dict[str, str]:
    """Return flags in the form of the golden file, without deprecated ones, which help does not
    show."""
    return {
        f"{flag.long}/{flag.short}".removesuffix("/"): flag.default_text.strip("'")
        for flag in flags
        if not flag.deprecated
    }


@pytest.mark.parametrize(
    ("path", "flags"), [pytest.param(*row, id=row[0]) for row in golden() if row[0] != "options"]
)
def test_flags_and_their_defaults_are_kubectls(path: str, flags: dict[str, str]) -> None:
    entries: Mapping[str, Entry] = COMMANDS
    for word in path.split():
        command = load(word, entries[word])
        entries = entries[word].commands
    assert shown(command.flags) == flags


def test_global_flags_are_kubectls_and_six_more() -> None:
    own = shown(GLOBAL_FLAGS)
    names = ("state", "reconcile", "faults", "must-exist", "trust", "ascii", "cache-dir")
    assert [own.pop(name) for name in names] == ["", "", "", "false", "false", "false", ""]
    kubectls = dict(golden())["options"]
    assert kubectls.pop("cache-dir") == "~/.kube/cache"
    assert own == kubectls


def test_golden_file_has_every_command_of_kubectl() -> None:
    refused = {
        name for name, entry in walk(COMMANDS) if entry.summary.startswith("Not supported: ")
    }
    of_kubepy = (
        "init",
        "controller",
        "fsck",
        "git",
        "serve",
        "envtest-assets",
        "help",
        "alpha",
        "__complete",
        "config",
        "plugin",
        "plan",
        "why",
        "fuzz",
        "demo challenge",
        "demo grade",
        "demo verify",
        "timeline",
        "rollout diff",
        "import",
        "mcp",
    )
    own = {
        name
        for name, _ in walk(COMMANDS)
        if name in of_kubepy or name.startswith(("git ", "kuberc "))
    }
    groups = {name for name, entry in walk(COMMANDS) if entry.commands}
    flagless = {
        name
        for name, entry in walk(COMMANDS)
        if entry.load and not load(name.split()[-1], entry).flags
    }
    assert {name for name, _ in walk(COMMANDS)} - refused - own - groups - flagless <= set(
        dict(golden())
    )
