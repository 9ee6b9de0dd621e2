import pytest

from kubepy.cli.gotemplate import ExecutionError, Template, TemplateError

SHIP = {
    "kind": "Ship",
    "metadata": {"name": "fleet", "labels": {"app": "x", "tier": "a<b"}},
    "spec": {
        "n": 5,
        "f": 2.5,
        "t": True,
        "no": None,
        "list": [1, 2, 3],
        "empty": [],
        "s": 'é"q"',
        "parts": [{"k": "a", "v": 1}, {"k": "b", "w": [1, 2]}],
    },
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        (
            "{{.kind}} {{.spec.n}} {{.spec.f}} {{.spec.t}} {{.spec.list}} {{.metadata.labels}}",
            "Ship 5 2.5 true [1 2 3] map[app:x tier:a<b]",
        ),
        ("{{.absent}}|{{.absent.deeper}}|{{.spec.no}}", "<no value>|<no value>|<no value>"),
        (
            "{{range .spec.list}}{{.}},{{end}}{{range .spec.empty}}x{{else}}none{{end}}",
            "1,2,3,none",
        ),
        ("{{range $i, $e := .spec.list}}{{$i}}={{$e}} {{end}}", "0=1 1=2 2=3 "),
        ("{{range $k, $v := .metadata.labels}}{{$k}}={{$v}};{{end}}", "app=x;tier=a<b;"),
        ("{{range 3}}{{.}}{{end}}", "012"),
        ("{{range .spec.list}}{{if eq . 2}}{{continue}}{{end}}{{.}}{{end}}", "13"),
        ("{{range .spec.list}}{{if eq . 2}}{{break}}{{end}}{{.}}{{end}}", "1"),
        ("{{if .spec.no}}a{{else if .spec.n}}b{{else}}c{{end}}", "b"),
        (
            "{{with .spec}}{{.n}}{{$.kind}}{{end}}{{with .absent}}x{{else with "
            ".spec}}{{.f}}{{end}}",
            "5Ship2.5",
        ),
        ('{{$x := "a"}}{{range .spec.list}}{{$x = "b"}}{{end}}{{$x}}', "b"),
        (
            '{{define "t"}}[{{.}}]{{end}}{{template "t" .kind}}{{template "t"}}{{block "b" '
            ".spec}}{{.n}}{{end}}",
            "[Ship][<no value>]5",
        ),
        ('a {{- .spec.n -}} b{{/* nothing */}}  {{- "c" }}', "a5bc"),
        ('{{(index .spec.parts 0).k}} {{(len .spec.list) | printf "%03d"}}', "a 003"),
        (
            '{{len .spec.s}} {{index .metadata.labels "app"}} {{slice .spec.list 1}} {{slice '
            ".kind 1 3}}",
            "5 x [2 3] hi",
        ),
        (
            '{{and 1 0 2}}{{or 0 "" "x"}}{{not .absent}} {{eq 1 2 1}} {{lt "a" "b"}} {{ge 1.5 '
            "1.5}}",
            "0xtrue true true true",
        ),
        ('{{print "a" 1 2 "b"}}|{{println .spec.list true}}', "a1 2b|[1 2 3] true\n"),
        (
            '{{html "<\'>"}} {{js "it\'s <"}} {{urlquery "a b&"}}',
            "&lt;&#39;&gt; it\\'s \\u003C a+b%26",
        ),
        (
            '{{exists .spec "n"}} {{exists .spec "parts" 7}} {{base64decode "aGk="}}',
            "true false hi",
        ),
        ('{{exists .absent}} {{exists .spec "no"}}', "true false"),
        (
            "{{js .absent}} {{html .spec.no 1}} {{urlquery .absent}}",
            "\\u003Cno value\\u003E &lt;no value&gt;1 %3Cno+value%3E",
        ),
        (
            "{{range 2}}{{end}}{{$n := .spec.n}}{{slice .spec.list 1 (len .spec.empty | or 2)}}",
            "[2]",
        ),
        (
            "{{true}} {{1.50}} {{0x10}} {{1_000}} {{'a'}} {{`raw`}} {{\"\\t\"}} {{1000000.0}}",
            "true 1.5 16 1000 97 raw \t 1e+06",
        ),
        ("{{.spec.n | }}", "5"),
    ],
)
def test_templates(template, text):
    assert Template(template).render(SHIP) == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ('"%s %v %d %q %%" "a" .spec.list 5 "q"', 'a [1 2 3] 5 "q" %'),
        (
            '"%5d|%-5d|%05d|%+d|%x|%#x|%o|%b|%c|%U" 42 42 42 42 255 255 8 5 65 65',
            "   42|42   |00042|+42|ff|0xff|10|101|A|U+0041",
        ),
        (
            '"%.2f|%8.3f|%e|%g|%G" 3.14159 3.14159 12345.678 1e7 1e-10',
            "3.14|   3.142|1.234568e+04|1e+07|1E-10",
        ),
        (
            '"%6s|%-6s|%.1s|%x|%t|%T|%T" "ab" "ab" "ab" "hi" true .spec.n 1',
            "    ab|ab    |a|6869|true|int64|int",
        ),
        ('"%[2]d %[1]d" 1 2', "2 1"),
        ('"%*d" 5 42', "   42"),
        ('"%d" "x"', "%!d(string=x)"),
        ('"%s" .spec.n', "%!s(int64=5)"),
        ('"%d %d" 1', "1 %!d(MISSING)"),
        ('"a" 1 nil', "a%!(EXTRA int=1, <nil>)"),
        ('"%s" .spec.parts', "[map[k:a v:%!s(int64=1)] map[k:b w:[%!s(int64=1) %!s(int64=2)]]]"),
        ('"%#v" .spec.list', "[]interface {}{1, 2, 3}"),
        ('"%"', "%!(NOVERB)"),
        (
            '"%10d|%-6d|%05s" "x" true .spec.n',
            "%!d(string=         x)|%!d(bool=true  )|%!s(int64=00005)",
        ),
        ('"%05t|%05v|%#v" true nil .spec.no', "0true|<nil>|<nil>"),
        ('"%999999999d" 42', "%!(NOVERB)%!(EXTRA int=42)"),  # as in Go's fmt_test.go
        ('"%.2147483648d|" 42', "%!(NOVERB)%!(EXTRA int=42)"),
        ('"%*d" 10000000 42', "%!(BADWIDTH)42"),
        ('"%-*d|" -10000000 42', "%!(BADWIDTH)42|"),
        ('"%.*d" 10000000 42', "%!(BADPREC)42"),
        ('"%[99999999999]d" 1', "%!d(BADINDEX)"),
        (f'"%{"0" * 5000}3d" 1', "001"),
        (f'"%{"9" * 5000}d" 1', "%!(NOVERB)%!(EXTRA int=1)"),
        (
            '"%#g %#g %b %U" 2.5 1e30 1.0 -3',
            "2.50000 1.00000e+30 4503599627370496p-52 U+FFFFFFFFFFFFFFFD",
        ),
    ],
)
def test_printf(form, text):
    assert Template(f"{{{{printf {form}}}}}").render(SHIP) == text


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{.a", "unclosed action"),
        ("{{.a}", "bad character U+007D '}'"),
        ("{{if}}x{{end}}", "missing value for if"),
        ("{{}}", "missing value for command"),
        ("{{end}}", "unexpected {{end}}"),
        ("{{if true}}{{else}}{{else}}{{end}}", "expected end; found {{else}}"),
        ("{{nofunc .}}", 'function "nofunc" not defined'),
        ("{{$y}}", 'undefined variable "$y"'),
        ('{{"open}}', "unterminated quoted string"),
        ("{{'ab'}}", "malformed character constant: 'ab'"),
        ("{{/* open", "unclosed comment"),
        ("{{break}}", "{{break}} outside {{range}}"),
        ("{{(1}}", "unclosed left paren"),
        ("{{1)}}", "unexpected right paren"),
        ('{{"a" | "b"}}', "non executable command in pipeline stage 2"),
        ("{{$a, $b := .x}}", "too many declarations in command"),
        ("{{template x}}", 'unexpected "x" in template clause'),
        ("{{1a}}", 'bad number syntax: "1a"'),
        ("{{0x1p99999999}}", 'illegal number syntax: "0x1p99999999"'),
        ("{{.x.}}", "unexpected <.> in operand"),
    ],
)
def test_invalid_template_fails_with_gos_message(template, why):
    with pytest.raises(TemplateError) as refused:
        Template(template)
    assert str(refused.value) == f"template: output:1: {why}"


def test_error_names_its_line():
    with pytest.raises(TemplateError, match=r"^template: output:2: unexpected EOF$"):
        Template("x\n{{if .a}}b")


@pytest.mark.parametrize(
    ("template", "where", "why"),
    [
        (
            "{{.metadata.name.x}}",
            '1:11: executing "output" at <.metadata.name.x>',
            "can't evaluate field x in type interface {}",
        ),
        (
            "{{.spec.no.x}}",
            '1:7: executing "output" at <.spec.no.x>',
            "nil pointer evaluating interface {}.x",
        ),
        (
            "a\n {{index .spec.list 9}}",
            '2:3: executing "output" at <index .spec.list 9>',
            "error calling index: index out of range: 9",
        ),
        (
            '{{index .spec.list "a"}}',
            '1:2: executing "output" at <index .spec.list "a">',
            "error calling index: cannot index slice/array with type string",
        ),
        ("{{len 3}}", '1:2: executing "output" at <len 3>', "error calling len: len of type int"),
        (
            "{{len}}",
            '1:2: executing "output" at <len>',
            "wrong number of args for len: want 1 got 0",
        ),
        (
            '{{eq 1 "a"}}',
            '1:2: executing "output" at <eq 1 "a">',
            "error calling eq: incompatible types for comparison: int and string",
        ),
        (
            "{{lt .spec.n 1.5}}",
            '1:2: executing "output" at <lt .spec.n 1.5>',
            "error calling lt: incompatible types for comparison: int64 and float64",
        ),
        (
            "{{range .spec.list}}{{.x}}{{end}}",
            '1:22: executing "output" at <.x>',
            "can't evaluate field x in type interface {}",
        ),
        (
            "{{range $x := .spec.list}}{{$x.y}}{{end}}",
            '1:30: executing "output" at <$x.y>',
            "can't evaluate field y in type interface {}",
        ),
        (
            "{{with .spec.n}}{{.x}}{{end}}",
            '1:18: executing "output" at <.x>',
            "can't evaluate field x in type int64",
        ),
        (
            "{{slice .spec.list .spec.n}}",
            '1:2: executing "output" at <slice .spec.list .spec.n>',
            "error calling slice: cannot index slice/array with type interface {}",
        ),
        (
            "{{call .spec.list}}",
            '1:2: executing "output" at <call .spec.list>',
            "error calling call: non-function .spec.list of type []interface {}",
        ),
        (
            "{{.spec.n | call}}",
            '1:12: executing "output" at <call>',
            "error calling call: non-function <int64 Value> of type int64",
        ),
        (
            '{{base64decode "é"}}',
            '1:2: executing "output" at <base64decode "é">',
            "error calling base64decode: base64 decode failed: illegal base64 data at input byte 0",
        ),
        (
            "{{range .kind}}{{end}}",
            '1:8: executing "output" at <.kind>',
            "range can't iterate over Ship",
        ),
        (
            '{{template "t"}}',
            '1:11: executing "output" at <{{template "t"}}>',
            'template "t" not defined',
        ),
        ("{{1 2}}", '1:2: executing "output" at <1>', "can't give argument to non-function 1"),
        (
            '{{base64decode "!!"}}',
            '1:2: executing "output" at <base64decode "!!">',
            "error calling base64decode: base64 decode failed: illegal base64 data at input byte 0",
        ),
        (
            '{{define "r"}}{{template "r"}}{{end}}{{template "r"}}',
            '1:25: executing "r" at <{{template "r"}}>',
            "exceeded maximum template depth (100000)",
        ),
    ],
)
def test_execution_error_names_its_position(template, where, why):
    with pytest.raises(ExecutionError) as refused:
        Template(template).render(SHIP)
    assert str(refused.value) == f"template: output:{where}: {why}"


def test_missing_key_is_error_on_request():
    with pytest.raises(ExecutionError, match='map has no entry for key "absent"'):
        Template("{{.absent}}").render(SHIP, missing_ok=False)


def test_execution_error_prints_output_template_and_object():
    template, obj = Template('{{.a}}{{index .b "c"}}'), {"a": 1, "b": ["<x>"]}
    with pytest.raises(ExecutionError) as refused:
        template.render(obj)
    why = (
        'template: output:1:8: executing "output" at <index .b "c">: error calling index: cannot '
        "index "
        "slice/array with type string"
    )
    told, message = template.explain(obj, refused.value, '{"a":1,"b":["\\u003cx\\u003e"]}')
    assert message == f'error executing template "{{{{.a}}}}{{{{index .b \\"c\\"}}}}": {why}'
    assert told == (
        f"1Error executing template: {why}. Printing more information for debugging the template:\n"
        '\ttemplate was:\n\t\t{{.a}}{{index .b "c"}}\n'
        '\traw data was:\n\t\t{"a":1,"b":["\\u003cx\\u003e"]}\n'
        "\tobject given to template engine was:\n\t\tmap[a:1 b:[<x>]]\n\n"
    )
