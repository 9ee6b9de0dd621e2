import pytest

from kubepy.api.jsonpath import JSONPathError, cell, parse, relaxed

SHIP = {
    "metadata": {"name": "fleet", "labels": {"app.example.org/part": "hull", "plain": "a<b"}},
    "spec": {
        "paused": True,
        "weight": 2.5,
        "none": None,
        "containers": [
            {"name": "a", "image": "a:1", "ports": [{"port": 8080}, {"port": 9090}], "cpu": "1"},
            {"name": "b", "image": "b:2", "args": ["--v=1"], "ports": [{"port": 53}]},
            {"name": "c", "image": "c:3"},
        ],
    },
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain text", "plain text"),
        (".metadata.name", ".metadata.name"),
        ("{.metadata.name}", "fleet"),
        ("{$.metadata.name}{@.metadata.name}", "fleetfleet"),
        ('name: {.metadata.name}, quoted: {"{}"}{"\\n"}', "name: fleet, quoted: {}\n"),
        ("{.spec.paused} {.spec.weight} {.spec.none}", "true 2.5 null"),
        ("{.metadata.labels}", '{"app.example.org/part":"hull","plain":"a\\u003cb"}'),
        (r"{.metadata.labels.app\.example\.org/part}", "hull"),
        (r"{.metadata.labels['app\.example\.org/part']}", "hull"),
        (
            "{.metadata['name','labels']}{'\\n'}",
            'fleet {"app.example.org/part":"hull","plain":"a\\u003cb"}\n',
        ),
        ("{.spec.containers[*].name}", "a b c"),
        (
            "{.spec.containers[0:2].name}|{.spec.containers[-1].name}|{.spec.containers[::2].name}",
            "a b|c|a c",
        ),
        (
            "{.spec.containers[1:].name}|{.spec.containers[:-1].name}|{.spec.containers[0:0]."
            "name}|",
            "b c|a b||",
        ),
        ("{.spec.containers[0,2].name}", "a c"),
        ("{..image}", "a:1 b:2 c:3"),
        ("{..ports[0].port}", "8080 53"),
        ("{.spec.containers[0].*}", '1 a:1 a [{"port":8080},{"port":9090}]'),
        ('{.spec.containers[?(@.name=="b")].image}', "b:2"),
        ('{.spec.containers[?(@.name!="b")].name}', "a c"),
        ("{.spec.containers[?(@.args)].name}", "b"),
        ("{.spec.containers[?(@.ports[0].port>53)].name}", "a"),
        (
            "{.spec.containers[?(@.ports[1])].name}",
            "a b",
        ),  # an index out of bounds still counts as something
        (
            "{range .spec.containers[*]}{.name}:{range .ports[*]}{.port},{end};{end}.",
            "a:8080,9090,;b:53,;c:;.",
        ),
        ("{range .spec.none[*]}{.name}{end}after", "after"),
        ("{range .spec.containers[*]}{.name}", "abc"),
        ("{.absent}{.spec.absent.deeper}[{.spec.node}]", "[]"),
        ("{.metadata.name.first}", ""),
        ("{1} {-2.5} {true}", "1 -2.5 true"),
    ],
)
def test_template_prints_values_of_object(template, text):
    assert parse(template, True).print(SHIP) == text


def test_empty_braces_print_whole_object():
    assert parse("{}").print({"b": 1, "a": []}) == '{"a":[],"b":1}'


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{.a[*]", "unclosed action"),
        ("{.a", "unclosed action"),
        ('{.a["b"]}', 'invalid array index "b"'),
        ("{.a[}", "unterminated array"),
        ("{.a[?(@.b==1]}", "unterminated filter"),
        ("{.a[?(@.b)", "unclosed array expect ]"),
        ("{'open}", "unterminated quoted string"),
        (r"{'\q'}", r"unquote string '\q' error invalid syntax"),
        ("{....a}", "invalid multiple recursive descent"),
        ("{1.2.3}", "cannot parse number 1.2.3"),
        ("{)}", "unrecognized character in action: U+0029 ')'"),
        ("{\t}", "unrecognized character in action: U+0009"),
        ("{.a[-]}", "array index - is not a number"),
    ],
)
def test_unreadable_template_raises_upstreams_error(template, why):
    with pytest.raises(JSONPathError) as refused:
        parse(template)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{.spec.containers[7].name}", "array index out of bounds: index 7, length 3"),
        ("{.spec.containers[2:1]}", "starting index 2 is greater than ending index 1"),
        ("{.spec.containers[0:2:0]}", "step must be > 0"),
        ("{.metadata[0]}", "map[string]interface {} is not array or slice"),
        (
            "{.metadata[?(@.x)]}",
            "map[labels:map[app.example.org/part:hull plain:a<b] name:fleet] is not array or slice "
            "and cannot be filtered",
        ),
        ("{.spec.containers[?(@.name<>1)]}", "unrecognized filter operator <>"),
        ("{.spec.containers[?(@.name==1)]}", "incompatible types for comparison"),
        ("{.spec.containers[?(@.ports==1)]}", "invalid type for comparison"),
        ("{.spec.containers[?(@..port>1)]}", "can only compare one element at a time"),
        ("{end}", "not in range, nothing to end"),
        ("{hello}", "unrecognized identifier hello"),
    ],
)
def test_template_that_does_not_fit_object_raises_upstreams_error(template, why):
    with pytest.raises(JSONPathError) as refused:
        parse(template, True).print(SHIP)
    assert str(refused.value) == why


def test_explain_names_template_and_object():
    path, obj = parse("{.a[0]}"), {"a": {"b": 'x"'}}
    with pytest.raises(JSONPathError) as refused:
        path.print(obj)
    assert path.explain(obj, refused.value).split("\n") == [
        'error executing jsonpath "{.a[0]}": Error executing template: map[string]interface {} is '
        "not array or slice. "
        "Printing more information for debugging the template:",
        "\ttemplate was:",
        "\t\t{.a[0]}",
        "\tobject given to jsonpath engine was:",
        '\t\tmap[string]interface {}{"a":map[string]interface {}{"b":"x\\""}}',
        "",
        "",
        "",
    ]


def test_missing_key_is_error_unless_allowed():
    with pytest.raises(JSONPathError, match="absent is not found"):
        parse("{.absent}").print(SHIP)
    assert parse("{.absent}", allow_missing_keys=True).print(SHIP) == ""


def test_print_as_json_prints_lists():
    assert (
        parse("{.spec.containers[*].name}").print_as_json(SHIP)
        == '[\n    "a",\n    "b",\n    "c"\n]\n'
    )
    assert parse("{.absent}", allow_missing_keys=True).print_as_json(SHIP) == "[]\n"


@pytest.mark.parametrize(
    "expression", ["metadata.name", ".metadata.name", "{metadata.name}", "{.metadata.name}"]
)
def test_relaxed_expression_becomes_template(expression):
    assert relaxed(expression) == "{.metadata.name}"


@pytest.mark.parametrize("expression", ["{.a}{.b}", "{a", "a}", "}"])
def test_invalid_relaxed_expression_raises(expression):
    with pytest.raises(JSONPathError, match="unexpected path string"):
        relaxed(expression)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metadata.name", "fleet"),
        ("metadata.labels", "map[app.example.org/part:hull plain:a<b]"),
        ("spec.containers[*].image", "a:1,b:2,c:3"),
        ("spec.containers[0].ports", "[map[port:8080] map[port:9090]]"),
        ("spec.none", "<nil>"),
        ("absent", "<none>"),
        ("", "<none>"),
    ],
)
def test_cell_joins_values_or_prints_none(path, text):
    assert cell(parse(relaxed(path), allow_missing_keys=True), SHIP) == text
