"""A parser of shell scripts: POSIX's language, and what people use of bash's.

``docs/decisions/shell-parser.md`` says why none of the libraries serves here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kubepy.shell.syntax import (
    Arithmetic,
    Assignment,
    CaseItem,
    Parameter,
    Part,
    Redirect,
    Script,
    ShellCommand,
    Substitution,
    Text,
    Word,
)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^]\n]*)\])?(\+?)=")
REDIRECT = re.compile(r"(\d*)(&>>|&>|<<-|<<<|<<|>>|>\||<>|<&|>&|<|>)")
SPECIAL_PARAMETERS = "@*#?-$!"
BLANKS = " \t"
WORD_ENDS = " \t\n;&|<>()"
RESERVED = frozenset(
    {
        "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "case", "esac",
        "in", "function", "{", "}", "!", "[[", "select", "time",
    }
)  # fmt: skip
CLOSING = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "//", "^^", ",,")
PLAIN_OPERATORS = "-=?+#%/^,:"
DOUBLE_QUOTE_ESCAPES = '$`"\\\n'
ANSI_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
}


class ShellSyntaxError(Exception):
    """A script that no shell takes."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class UnknownConstruct(Exception):
    """A construct that this parser does not know."""


@lru_cache(maxsize=512)
def parse(text: str) -> Script:
    """Parse a script. An error is part of the result: the commands before it are run."""
    parser = _Parser(text)
    return parser.parse_script()


class _Parser:
    """Recursive descent over the characters of one script."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.nodes: list[ShellCommand] = []
        self.heredocs: list[tuple[ShellCommand, int, str, bool, bool]] = []
        self.is_open = False

    # --- nodes and positions

    def add(self, node: ShellCommand) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def new(self, kind: str) -> ShellCommand:
        return ShellCommand(kind, line=self.line)

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.position) + 1

    def fail(self, message: str) -> ShellSyntaxError:
        return ShellSyntaxError(message, self.line)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def starts(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.position)

    def skip_blanks(self) -> None:
        while True:
            if self.starts("\\\n"):
                self.position += 2
            elif self.peek() and self.peek() in BLANKS:
                self.position += 1
            else:
                break
        if self.peek() == "#":
            end = self.text.find("\n", self.position)
            self.position = len(self.text) if end < 0 else end

    def skip_newlines(self) -> None:
        while True:
            self.skip_blanks()
            if self.peek() != "\n":
                return
            self.take_newline()

    def take_newline(self) -> None:
        self.position += 1
        self.read_heredocs()

    def next_word(self) -> str:
        """Return the characters up to the next end of a word, without taking them."""
        end = self.position
        while end < len(self.text) and self.text[end] not in WORD_ENDS:
            end += 1
        return self.text[self.position : end]

    def at_reserved(self, *words: str) -> bool:
        return self.next_word() in words

    def take(self, word: str) -> None:
        self.skip_blanks()
        if self.next_word() != word:
            raise self.unexpected()
        self.position += len(word)

    def unexpected(self) -> ShellSyntaxError:
        self.skip_blanks()
        if not self.peek():
            return self.fail("end of file unexpected")
        word = self.next_word()
        if word in RESERVED:
            return self.fail(f'"{word}" unexpected')
        if word:
            return self.fail("word unexpected")
        if self.peek() == "\n":
            return self.fail("newline unexpected")
        two = self.text[self.position : self.position + 2]
        shown = two if two in ("&&", "||", ";;", "<<", ">>") else self.peek()
        return self.fail(f'"{shown}" unexpected')

    # --- lists

    def parse_script(self) -> Script:
        main = self.new("list")
        number = self.add(main)
        try:
            self.parse_items(main)
            self.skip_newlines()
            if self.peek():
                raise self.unexpected()
            self.read_heredocs()
        except ShellSyntaxError as error:
            return Script(
                self.nodes,
                number,
                error.message,
                error.line,
            )
        except UnknownConstruct:
            unknown = self.add(self.new("unknown"))
            main.children.append(unknown)
            main.operators.append(";")
        return Script(self.nodes, number, is_open=self.is_open)

    def parse_list(self) -> int:
        """Parse a compound list up to what closes it. Returns the number of the list."""
        node = self.new("list")
        self.parse_items(node)
        if not node.children:
            raise self.unexpected()
        return self.add(node)

    def parse_items(self, node: ShellCommand) -> None:
        while True:
            self.skip_newlines()
            if not self.peek() or self.peek() == ")" or self.starts(";;"):
                return
            if self.next_word() in CLOSING:
                return
            child = self.parse_and_or()
            separator = self.take_separator()
            node.children.append(child)
            node.operators.append(separator or ";")
            if not separator:
                return

    def take_separator(self) -> str:
        self.skip_blanks()
        if self.starts(";;") or self.starts("&&"):
            return ""
        if self.peek() in (";", "&"):
            separator = self.peek()
            self.position += 1
            return separator
        if self.peek() == "\n":
            self.take_newline()
            return ";"
        return ""

    def parse_and_or(self) -> int:
        first = self.parse_pipeline()
        node = self.new("and_or")
        node.children.append(first)
        while True:
            self.skip_blanks()
            operator = self.text[self.position : self.position + 2]
            if operator not in ("&&", "||"):
                break
            self.position += 2
            self.skip_newlines()
            node.operators.append(operator)
            node.children.append(self.parse_pipeline())
        if len(node.children) == 1:
            return first
        return self.add(node)

    def parse_pipeline(self) -> int:
        self.skip_blanks()
        node = self.new("pipeline")
        while self.at_reserved("!"):
            self.position += 1
            node.operators.append("!")
            self.skip_blanks()
        node.children.append(self.parse_command())
        while True:
            self.skip_blanks()
            if not self.starts("|") or self.starts("||"):
                break
            self.position += 1
            if self.peek() == "&":
                self.position += 1
                child = self.nodes[node.children[-1]]
                child.redirects.append(Redirect(2, ">&", (Text("1", is_quoted=False),)))
            self.skip_newlines()
            node.children.append(self.parse_command())
        if len(node.children) == 1 and len(node.operators) % 2 == 0:
            return node.children[0]
        node.operators = node.operators[: len(node.operators) % 2]
        return self.add(node)

    # --- commands

    def parse_command(self) -> int:
        self.skip_blanks()
        if self.starts("((") and self.is_arithmetic_command():
            return self.with_redirects(self.parse_arithmetic_command())
        if self.peek() == "(":
            return self.with_redirects(self.parse_subshell())
        word = self.next_word()
        match word:
            case "{":
                return self.with_redirects(self.parse_group())
            case "if":
                return self.with_redirects(self.parse_if())
            case "while" | "until":
                return self.with_redirects(self.parse_loop(word))
            case "for":
                return self.with_redirects(self.parse_for())
            case "case":
                return self.with_redirects(self.parse_case())
            case "[[":
                return self.with_redirects(self.parse_condition())
            case "function":
                return self.parse_function_keyword()
            case "select" | "time":
                raise UnknownConstruct
        if word in CLOSING:
            raise self.unexpected()
        match_name = NAME.match(self.text, self.position)
        if match_name and re.compile(r"[ \t]*\([ \t]*\)").match(self.text, match_name.end()):
            return self.parse_function(match_name[0])
        return self.parse_simple()

    def with_redirects(self, node: ShellCommand) -> int:
        while True:
            self.skip_blanks()
            if not self.take_redirect(node):
                break
        return self.add(node)

    def parse_subshell(self) -> ShellCommand:
        node = self.new("subshell")
        self.position += 1
        node.children.append(self.parse_list())
        self.skip_newlines()
        if self.peek() != ")":
            raise self.unexpected()
        self.position += 1
        return node

    def parse_group(self) -> ShellCommand:
        node = self.new("group")
        self.take("{")
        node.children.append(self.parse_list())
        self.take("}")
        return node

    def parse_if(self) -> ShellCommand:
        node = self.new("if")
        self.take("if")
        node.children.append(self.parse_list())
        self.take("then")
        node.children.append(self.parse_list())
        while self.at_reserved("elif"):
            self.take("elif")
            node.children.append(self.parse_list())
            self.take("then")
            node.children.append(self.parse_list())
        if self.at_reserved("else"):
            self.take("else")
            node.children.append(self.parse_list())
        self.take("fi")
        return node

    def parse_loop(self, word: str) -> ShellCommand:
        node = self.new("loop")
        self.take(word)
        node.operators.append(word)
        node.children.append(self.parse_list())
        self.parse_do(node)
        return node

    def parse_do(self, node: ShellCommand) -> None:
        self.skip_newlines()
        self.take("do")
        node.children.append(self.parse_list())
        self.take("done")

    def parse_for(self) -> ShellCommand:
        node = self.new("for")
        self.take("for")
        self.skip_blanks()
        if self.starts("(("):
            return self.parse_arithmetic_for(node)
        name = self.next_word()
        if not NAME.fullmatch(name):
            raise self.fail("Bad for loop variable")
        self.position += len(name)
        node.name = name
        self.skip_newlines()
        if self.at_reserved("in"):
            self.take("in")
            node.operators.append("in")
            while True:
                self.skip_blanks()
                if not self.peek() or self.peek() in ";\n&|()":
                    break
                node.words.append(self.parse_word())
        self.skip_blanks()
        if self.peek() == ";":
            self.position += 1
        self.parse_do(node)
        return node

    def parse_arithmetic_for(self, node: ShellCommand) -> ShellCommand:
        """Parse ``for ((a; b; c))``: a loop with its three expressions as words."""
        text = self.take_arithmetic_text()
        parts = text.split(";")
        if len(parts) != 3:
            raise UnknownConstruct
        node.kind = "arithmetic_for"
        node.words = [_Parser(part.strip()).parse_arithmetic_word() for part in parts]
        self.skip_blanks()
        if self.peek() == ";":
            self.position += 1
        self.skip_newlines()
        self.take("do")
        node.children.append(self.parse_list())
        self.take("done")
        return node

    def parse_case(self) -> ShellCommand:
        node = self.new("case")
        self.take("case")
        self.skip_blanks()
        node.words.append(self.parse_word())
        self.skip_newlines()
        self.take("in")
        while True:
            self.skip_newlines()
            if self.at_reserved("esac"):
                break
            if not self.peek():
                raise self.unexpected()
            node.items.append(self.parse_case_item())
        self.take("esac")
        return node

    def parse_case_item(self) -> CaseItem:
        if self.peek() == "(":
            self.position += 1
        patterns: list[Word] = []
        while True:
            self.skip_blanks()
            patterns.append(self.parse_word())
            self.skip_blanks()
            if self.peek() != "|":
                break
            self.position += 1
        if self.peek() != ")":
            raise self.unexpected()
        self.position += 1
        body = self.new("list")
        self.parse_items(body)
        number = self.add(body)
        self.skip_newlines()
        falls_through = self.starts(";&")
        if self.starts(";;&"):
            raise UnknownConstruct
        if self.starts(";;") or falls_through:
            self.position += 2
        elif not self.at_reserved("esac"):
            raise self.unexpected()
        return CaseItem(tuple(patterns), number, falls_through)

    def parse_function(self, name: str) -> int:
        self.position += len(name)
        self.skip_blanks()
        self.position = self.text.index(")", self.position) + 1
        return self.parse_function_body(name)

    def parse_function_keyword(self) -> int:
        self.take("function")
        self.skip_blanks()
        name = self.next_word()
        self.position += len(name)
        self.skip_blanks()
        if self.peek() == "(":
            self.position = self.text.index(")", self.position) + 1
        return self.parse_function_body(name)

    def parse_function_body(self, name: str) -> int:
        node = self.new("function")
        node.name = name
        self.skip_newlines()
        node.children.append(self.parse_command())
        return self.add(node)

    def parse_condition(self) -> ShellCommand:
        """Parse ``[[ … ]]``: its words, in which nothing is split."""
        node = self.new("condition")
        self.take("[[")
        while True:
            self.skip_newlines()
            if not self.peek():
                raise self.unexpected()
            if self.at_reserved("]]"):
                break
            operator = re.compile(r"&&|\|\||[()<>!](?=[\s(])|<|>").match(self.text, self.position)
            if operator:
                self.position = operator.end()
                node.words.append((Text(operator[0], is_quoted=False),))
            else:
                is_pattern = bool(node.words) and node.words[-1] == (Text("=~", is_quoted=False),)
                node.words.append(self.parse_word("" if is_pattern else WORD_ENDS))
        self.take("]]")
        return node

    def is_arithmetic_command(self) -> bool:
        """Tell whether ``((`` begins an expression, and not a subshell in a subshell."""
        return self.closes_arithmetic(self.position)

    def parse_arithmetic_command(self) -> ShellCommand:
        node = self.new("arithmetic")
        text = self.take_arithmetic_text()
        node.words.append(_Parser(text).parse_arithmetic_word())
        return node

    def take_arithmetic_text(self) -> str:
        """Take ``((…))`` and return what is in it."""
        self.position += 2
        begin = self.position
        depth = 0
        while self.peek():
            if self.starts("))") and depth == 0:
                text = self.text[begin : self.position]
                self.position += 2
                return text
            depth += {"(": 1, ")": -1}.get(self.peek(), 0)
            self.position += 1
        raise self.fail("end of file unexpected")

    def parse_simple(self) -> int:
        node = self.new("simple")
        while True:
            self.skip_blanks()
            if self.take_redirect(node):
                continue
            if not self.peek() or self.peek() in "\n;&|)":
                break
            if self.peek() == "(":
                raise self.unexpected()
            assignment = ASSIGNMENT.match(self.text, self.position)
            if assignment and not node.words:
                node.assignments.append(self.take_assignment(assignment))
                continue
            node.words.append(self.parse_word())
        if not node.words and not node.assignments and not node.redirects:
            raise self.unexpected()
        return self.add(node)

    def take_assignment(self, assignment: re.Match[str]) -> Assignment:
        """Take an assignment, of which the name and the equals sign were found."""
        name, subscript, plus = assignment.groups()
        self.position = assignment.end()
        number = self.parse_inner(subscript) if subscript else ()
        if self.peek() == "(":
            elements = self.take_elements()
            return Assignment(name, (), bool(plus), number, elements)
        word = self.parse_word() if self.at_word() else ()
        return Assignment(name, word, bool(plus), number)

    def take_elements(self) -> tuple[Word, ...]:
        """Take the words of an array."""
        self.position += 1
        elements: list[Word] = []
        while True:
            self.skip_newlines()
            if not self.peek():
                raise self.unexpected()
            if self.peek() == ")":
                self.position += 1
                return tuple(elements)
            if not self.at_word():
                raise self.unexpected()
            elements.append(self.parse_word())

    def at_word(self) -> bool:
        if self.starts("<("):
            return True
        return bool(self.peek()) and self.peek() not in WORD_ENDS

    # --- redirections

    def take_redirect(self, node: ShellCommand) -> bool:
        found = REDIRECT.match(self.text, self.position)
        if found is None:
            return False
        operator = found[2]
        if operator in ("<", ">") and self.text.startswith("(", found.end()):
            if operator == ">" or found[1]:
                raise UnknownConstruct
            return False  # a process substitution, which is a word
        self.position = found.end()
        default = 0 if operator.startswith("<") else 1
        descriptor = int(found[1]) if found[1] else default
        self.skip_blanks()
        if self.starts(">("):
            raise UnknownConstruct
        if not self.at_word():
            raise self.unexpected()
        if operator in ("<<", "<<-"):
            self.begin_heredoc(node, descriptor, operator)
        else:
            node.redirects.append(Redirect(descriptor, operator, self.parse_word()))
        return True

    def begin_heredoc(self, node: ShellCommand, descriptor: int, operator: str) -> None:
        begin = self.position
        word = self.parse_word()
        is_quoted = any(ch in self.text[begin : self.position] for ch in "'\"\\")
        end = "".join(part.text for part in word if isinstance(part, Text))
        node.redirects.append(Redirect(descriptor, "<<", ()))
        index = len(node.redirects) - 1
        self.heredocs.append((node, index, end, is_quoted, operator == "<<-"))

    def read_heredocs(self) -> None:
        """Read the texts of here-documents, which begin after the line that names them."""
        waiting, self.heredocs = self.heredocs, []
        for node, index, end, is_quoted, strips_tabs in waiting:
            lines = []
            while self.position < len(self.text):
                stop = self.text.find("\n", self.position)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.position : stop]
                self.position = min(stop + 1, len(self.text))
                if strips_tabs:
                    line = line.lstrip("\t")
                if line == end:
                    break
                lines.append(line + "\n")
            else:
                self.is_open = True
            text = "".join(lines)
            if is_quoted:
                word: Word = (Text(text, is_quoted=True),)
            else:
                word = _heredoc_word(self, text)
            node.redirects[index] = node.redirects[index]._replace(word=word)

    # --- words

    def parse_word(self, ends: str = WORD_ENDS) -> Word:
        """Parse one word. With no ends it goes to the next blank."""
        ends = ends or " \t\n"
        parts: list[Part] = []
        while self.peek() and (self.peek() not in ends or self.starts("<(")):
            self.parse_part(parts)
        return _joined(parts)

    def parse_part(self, parts: list[Part]) -> None:
        character = self.peek()
        if character == "'":
            parts.append(Text(self.take_single_quoted(), is_quoted=True))
        elif character == '"':
            self.position += 1
            self.parse_double_quoted(parts, '"')
        elif character == "\\":
            if self.starts("\\\n"):
                self.position += 2
                return
            parts.append(Text(self.text[self.position + 1 : self.position + 2], is_quoted=True))
            self.position += 2
        elif self.starts("$'"):
            parts.append(Text(self.take_ansi_quoted(), is_quoted=True))
        elif self.starts('$"'):
            self.position += 1
        elif character == "$":
            self.parse_dollar(parts, is_quoted=False)
        elif character == "`":
            parts.append(self.take_backquoted(is_quoted=False))
        elif self.starts("<("):
            self.position += 2
            substitution = self.take_substitution(is_quoted=True)
            parts.append(substitution._replace(is_file=True))
        else:
            parts.append(Text(character, is_quoted=False))
            self.position += 1

    def take_single_quoted(self) -> str:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise self.fail("Unterminated quoted string")
        text = self.text[self.position + 1 : end]
        self.position = end + 1
        return text

    def take_ansi_quoted(self) -> str:
        self.position += 2
        characters = []
        while self.peek() and self.peek() != "'":
            if self.peek() == "\\":
                following = self.text[self.position + 1 : self.position + 2]
                characters.append(ANSI_ESCAPES.get(following, following))
                self.position += 2
            else:
                characters.append(self.peek())
                self.position += 1
        if not self.peek():
            raise self.fail("Unterminated quoted string")
        self.position += 1
        return "".join(characters)

    def parse_double_quoted(self, parts: list[Part], end: str) -> None:
        if end and self.peek() == end:
            parts.append(Text("", is_quoted=True))
        while True:
            character = self.peek()
            if not character:
                if not end:
                    return
                raise self.fail("Unterminated quoted string")
            if character == end:
                self.position += 1
                return
            following = self.text[self.position + 1 : self.position + 2]
            if character == "\\" and following and following in DOUBLE_QUOTE_ESCAPES:
                if following == '"' and not end:
                    parts.append(Text('\\"', is_quoted=True))
                elif following != "\n":
                    parts.append(Text(following, is_quoted=True))
                self.position += 2
            elif character == "$":
                self.parse_dollar(parts, is_quoted=True)
            elif character == "`":
                parts.append(self.take_backquoted(is_quoted=True))
            else:
                parts.append(Text(character, is_quoted=True))
                self.position += 1

    def parse_dollar(self, parts: list[Part], *, is_quoted: bool) -> None:
        if self.starts("$((") and self.closes_arithmetic(self.position + 1):
            parts.append(self.take_arithmetic(is_quoted))
            return
        if self.starts("$("):
            self.position += 2
            parts.append(self.take_substitution(is_quoted))
            return
        if self.starts("${"):
            parts.append(self.take_braced(is_quoted))
            return
        found = NAME.match(self.text, self.position + 1)
        if found:
            self.position = found.end()
            parts.append(
                Parameter(
                    found[0],
                    "",
                    (),
                    is_quoted,
                )
            )
            return
        following = self.text[self.position + 1 : self.position + 2]
        if following and (following.isdigit() or following in SPECIAL_PARAMETERS):
            self.position += 2
            parts.append(
                Parameter(
                    following,
                    "",
                    (),
                    is_quoted,
                )
            )
            return
        parts.append(Text("$", is_quoted))
        self.position += 1

    def closes_arithmetic(self, begin: int) -> bool:
        """Tell whether ``((`` begins an expression: two parentheses end it."""
        depth = 0
        for index in range(begin, len(self.text)):
            character = self.text[index]
            if character == "(":
                depth += 1
            elif character == ")":
                depth -= 1
                if depth == 1:
                    return self.text.startswith("))", index)
        return False

    def take_arithmetic(self, is_quoted: bool) -> Arithmetic:
        self.position += 3
        begin = self.position
        depth = 0
        while not (self.starts("))") and depth == 0):
            depth += {"(": 1, ")": -1}.get(self.peek(), 0)
            self.position += 1
        inner = self.text[begin : self.position]
        self.position += 2
        return Arithmetic(self.parse_inner(inner), is_quoted)

    def parse_inner(self, text: str) -> Word:
        """Parse a text within this script as if it were double-quoted."""
        return _heredoc_word(self, text)

    def parse_arithmetic_word(self) -> Word:
        """Parse the whole text as an expression."""
        parts: list[Part] = []
        self.parse_double_quoted(parts, "")
        return _joined(parts)

    def take_substitution(self, is_quoted: bool) -> Substitution:
        """Take what comes after ``$(``, up to its parenthesis."""
        node = self.new("list")
        heredocs, self.heredocs = self.heredocs, []
        self.parse_items(node)
        self.skip_newlines()
        if self.peek() != ")":
            raise self.unexpected()
        self.position += 1
        self.heredocs = heredocs
        return Substitution(self.add(node), is_quoted)

    def take_backquoted(self, *, is_quoted: bool) -> Substitution:
        """Take a substitution in backquotes: its text is parsed when its quotes are undone."""
        self.position += 1
        characters = []
        while True:
            character = self.peek()
            if not character:
                raise self.fail("EOF in backquote substitution")
            if character == "`":
                break
            following = self.text[self.position + 1 : self.position + 2]
            escaped = '$`\\"' if is_quoted else "$`\\"
            if character == "\\" and following and following in escaped:
                characters.append(following)
                self.position += 2
            else:
                characters.append(character)
                self.position += 1
        self.position += 1
        inner = _Parser("".join(characters))
        inner.nodes = self.nodes
        node = self.new("list")
        inner.parse_items(node)
        return Substitution(self.add(node), is_quoted)

    def take_braced(self, is_quoted: bool) -> Parameter:
        """Take ``${…}``."""
        self.position += 2
        if self.peek() == "#" and not self.starts("#}"):
            name = self.take_parameter_name(after=1)
            subscript = self.take_subscript()
            if self.peek() != "}":
                raise UnknownConstruct
            self.position += 1
            return Parameter(name, "length", (), is_quoted, subscript)
        is_indirect = self.peek() == "!"
        name = self.take_parameter_name(after=1 if is_indirect else 0)
        subscript = self.take_subscript()
        if self.peek() == "}" and not (is_indirect and subscript):
            self.position += 1
            return Parameter(name, "!" if is_indirect else "", (), is_quoted, subscript)
        if is_indirect:
            raise UnknownConstruct
        operator = self.take_parameter_operator()
        is_text = operator.lstrip(":") in ("", "-", "=", "?", "+")
        word = self.parse_operand(is_quoted and is_text)
        return Parameter(name, operator, word, is_quoted, subscript)

    def take_subscript(self) -> Word:
        """Take ``[number]`` after the name of an array; nothing where there is none."""
        if self.peek() != "[":
            return ()
        end = self.text.find("]", self.position)
        if end < 0:
            raise self.fail("Bad substitution")
        text = self.text[self.position + 1 : end]
        self.position = end + 1
        return self.parse_inner(text)

    def take_parameter_name(self, after: int) -> str:
        begin = self.position + after
        found = NAME.match(self.text, begin) or re.compile(r"\d+").match(self.text, begin)
        if found:
            self.position = found.end()
            return found[0]
        character = self.text[begin : begin + 1]
        if character and character in SPECIAL_PARAMETERS:
            self.position = begin + 1
            return character
        raise self.fail("Bad substitution")

    def take_parameter_operator(self) -> str:
        for operator in OPERATORS:
            if self.starts(operator):
                self.position += 2
                return operator
        character = self.peek()
        if character and character in PLAIN_OPERATORS:
            self.position += 1
            return character
        raise self.fail("Bad substitution" if character else "Missing '}'")

    def parse_operand(self, is_quoted: bool) -> Word:
        """Parse the word after an operator, up to its brace."""
        parts: list[Part] = []
        while self.peek() != "}":
            if not self.peek():
                raise self.fail("Missing '}'")
            character = self.peek()
            following = self.text[self.position + 1 : self.position + 2]
            if is_quoted and character == "'":
                parts.append(Text("'", is_quoted=True))
                self.position += 1
            elif is_quoted and character == "\\":
                is_escape = bool(following) and following in DOUBLE_QUOTE_ESCAPES + "}"
                parts.append(Text(following if is_escape else "\\", is_quoted=True))
                self.position += 2 if is_escape else 1
            elif is_quoted and character not in '"$`':
                parts.append(Text(character, is_quoted=True))
                self.position += 1
            elif is_quoted and character == "$":
                self.parse_dollar(parts, is_quoted=True)
            else:
                self.parse_part(parts)
        self.position += 1
        return _joined(parts)


def _heredoc_word(parser: _Parser, text: str) -> Word:
    """Parse the text of a here-document, in which ``$`` and backquotes are expanded."""
    inner = _Parser(text)
    inner.nodes = parser.nodes
    parts: list[Part] = []
    inner.parse_double_quoted(parts, "")
    return _joined(parts)


def _joined(parts: list[Part]) -> Word:
    """Put texts together that follow one another."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text) and part.is_quoted == last.is_quoted:
            joined[-1] = Text(last.text + part.text, part.is_quoted)
        else:
            joined.append(part)
    return tuple(joined)
