"""Split a template's text into tokens (Go's ``text/template/parse/lex.go``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api.values.goformat import code_point, quote

LEFT = "{{"
RIGHT = "}}"
OPEN_COMMENT = "/*"
CLOSE_COMMENT = "*/"
SPACE = " \t\r\n"
KEYWORDS = frozenset(
    (
        "block",
        "break",
        "continue",
        "define",
        "else",
        "end",
        "if",
        "range",
        "nil",
        "template",
        "with",
    )
)


class TemplateToken(NamedTuple):
    """A token of a template.

    :param kind: text, left, right, space, eof, error, a keyword, field, variable, identifier, dot,
        bool, number, char-constant, string, assign (``=``), declare (``:=``), pipe, ``(``, ``)``,
        or char for any other character.
    """

    kind: str
    value: str
    position: int
    line: int

    def __str__(self) -> str:
        if self.kind in ("eof", "error"):
            if self.kind == "eof":
                return "EOF"
            return self.value
        if self.kind in KEYWORDS or self.kind == "dot":
            return f"<{self.value}>"
        if len(self.value) > 10:
            return quote(self.value[:10]) + "..."
        return quote(self.value)


class _LexError(Exception):
    pass


class Lexer:
    """The state of splitting a text into tokens; the first error is the last token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0
        self.depth = 0  # of parentheses

    def tokens(self) -> Iterator[TemplateToken]:
        try:
            while self.at < len(self.text):
                left = self.text.find(LEFT, self.at)
                self.at = len(self.text) if left < 0 else left
                text = self.text[self.start : self.at]
                if self._trims_left():
                    text = text.rstrip(SPACE)
                if text:
                    yield TemplateToken(
                        "text", text, self._bytes(self.start), self._line(self.start)
                    )
                self.start = self.at
                if left >= 0:
                    yield from self._inside()
            yield self._token("eof")
        except _LexError as error:
            yield TemplateToken(
                "error", str(error), self._bytes(self.start), self._line(self.start)
            )

    def _trims_left(self) -> bool:
        return self.text.startswith(f"{LEFT}-", self.at) and self.text[
            self.at + 3 : self.at + 4
        ] in tuple(SPACE)

    def _trims_right(self) -> bool:
        return self.text[self.at : self.at + 1] in tuple(SPACE) and self.text.startswith(
            "-" + RIGHT, self.at + 1
        )

    def _inside(self) -> Iterator[TemplateToken]:
        """Yield the tokens of an action, its braces included; nothing for a comment."""
        after = self.at + len(LEFT) + (2 if self._trims_left() else 0)
        if self.text.startswith(OPEN_COMMENT, after):
            self._comment(after)
            return
        self.at = after
        yield self._token("left")
        self.depth = 0
        while not (self._trims_right() or self.text.startswith(RIGHT, self.at)):
            yield self._next()
        if self.depth:
            raise _LexError("unclosed left paren")
        trims = self._trims_right()
        self.at += 2 * trims
        self.start = self.at
        self.at += len(RIGHT)
        yield self._token("right")
        self._skip_trimmed(trims)

    def _skip_trimmed(self, trims: bool) -> None:
        while trims and self.text[self.at : self.at + 1] in tuple(SPACE):
            self.at += 1
        self.start = self.at

    def _comment(self, after: int) -> None:
        self.start = after
        end = self.text.find(CLOSE_COMMENT, after + len(OPEN_COMMENT))
        if end < 0:
            raise _LexError("unclosed comment")
        self.at = end + len(CLOSE_COMMENT)
        trims = self._trims_right()
        if not trims and not self.text.startswith(RIGHT, self.at):
            raise _LexError("comment ends before closing delimiter")
        self.at += 2 * trims + len(RIGHT)
        self._skip_trimmed(trims)

    def _next(self) -> TemplateToken:
        """Return the next token of an action."""
        character = self._take()
        if not character:
            raise _LexError("unclosed action")
        if character in SPACE:
            self.at -= 1
            # The last space stays if it belongs to a closing brace that trims.
            while self._peek() in tuple(SPACE) and not self._trims_right():
                self.at += 1
            return self._token("space")

        if character in _MARKS:
            return self._mark(character)
        if character in _QUOTES:
            return self._quoted(character)
        if character == "$" or (character == "." and not self._peek().isdecimal()):
            kind = "variable" if character == "$" else "field"
            if self._ends_word():
                return self._token("dot" if kind == "field" else kind)
            self._skip_word()
            return self._token(kind)

        if character in ".+-" or character in "0123456789":
            return self._number()
        if _is_word(character):
            self._skip_word()
            word = self.text[self.start : self.at]
            kind = "bool" if word in ("true", "false") else "identifier"
            return self._token(word if word in KEYWORDS else kind)

        if character.isascii() and character.isprintable():
            return self._token("char")
        raise _LexError(f"unrecognized character in action: {code_point(character)}")

    def _mark(self, character: str) -> TemplateToken:
        if character == ":":
            if self._take() != "=":
                raise _LexError("expected :=")
            return self._token("declare")
        self.depth += {"(": 1, ")": -1}.get(character, 0)
        if self.depth < 0:
            raise _LexError("unexpected right paren")
        return self._token(_MARKS[character])

    def _quoted(self, quote_character: str) -> TemplateToken:
        kind, noun = _QUOTES[quote_character]
        raw = quote_character == "`"
        while (character := self._take()) != quote_character:
            if character == "\\" and not raw:
                character = self._take()
            if not character or (character == "\n" and not raw):
                raise _LexError(f"unterminated {noun}")
        return self._token(kind)

    def _skip_word(self) -> None:
        while _is_word(self._peek()):
            self.at += 1
        if not self._ends_word():
            self.at += 1
            raise _LexError(f"bad character {code_point(self.text[self.at - 1])}")

    def _ends_word(self) -> bool:
        following = self._peek()
        return following in ("", *SPACE, *".,|:()") or self.text.startswith(RIGHT, self.at)

    def _number(self) -> TemplateToken:
        self.at -= 1
        self._scan_number()
        joined = self._peek() in ("+", "-")
        if joined:
            self._scan_number()
        elif _is_word(self._peek()):
            self.at += 1
            joined = True
        if joined:
            raise _LexError(f"bad number syntax: {quote(self.text[self.start : self.at])}")
        return self._token("number")

    def _scan_number(self) -> None:
        self._accept("+-")
        digits = "0123456789_"
        exponent = "eE"
        if self._accept("0"):
            if self._accept("xX"):
                digits = "0123456789abcdefABCDEF_"
                exponent = "pP"
            elif self._accept("oO"):
                digits = "01234567_"
                exponent = ""
            elif self._accept("bB"):
                digits = "01_"
                exponent = ""

        self._run(digits)
        if self._accept("."):
            self._run(digits)
        if self._accept(exponent):
            self._accept("+-")
            self._run("0123456789_")

    def _accept(self, characters: str) -> bool:
        accepted = self._peek() in tuple(characters)
        self.at += accepted
        return accepted

    def _run(self, characters: str) -> None:
        while self._accept(characters):
            pass

    def _take(self) -> str:
        character = self._peek()
        self.at += len(character)
        return character

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _token(self, kind: str) -> TemplateToken:
        token = TemplateToken(
            kind, self.text[self.start : self.at], self._bytes(self.start), self._line(self.start)
        )
        self.start = self.at
        return token

    def _bytes(self, index: int) -> int:
        return len(self.text[:index].encode())

    def _line(self, index: int) -> int:
        return 1 + self.text.count("\n", 0, index)


_MARKS = {"=": "assign", ":": "declare", "|": "pipe", "(": "(", ")": ")"}
_QUOTES = {
    '"': ("string", "quoted string"),
    "`": ("string", "raw quoted string"),
    "'": ("char-constant", "character constant"),
}


def _is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()
