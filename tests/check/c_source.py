"""C read well enough to measure it: comments and strings taken out, functions with their extent, parameters and nesting,
file-scope variables. Relies on the layout that clang-format gives: a function's braces stand in the first column."""
import re
from dataclasses import dataclass

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[{}()\[\];:,]|\S")


def blank_comments(text, blank_strings=True):
    """The same text with comments (and the insides of strings) replaced by spaces; line numbers stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] + " " * (len(found) - 2) + found[0] if blank_strings else found
        return re.sub(r"[^\n]", " ", found)

    return pattern.sub(blank, text)


def blank_preprocessor(code):
    """Directives and their continuation lines replaced by empty lines."""
    lines, is_directive = [], False
    for line in code.split("\n"):
        starts = line.lstrip().startswith("#")
        is_directive = starts or is_directive
        lines.append("" if is_directive else line)
        is_directive = is_directive and line.endswith("\\")
    return "\n".join(lines)


@dataclass
class Function:
    name: str
    line: int
    n_line: int
    n_param: int
    nesting: int
    is_kernel: bool


class BodyReader:
    """Walks a function body statement by statement and finds the deepest control structure."""

    def __init__(self, tokens):
        self.tokens, self.at, self.deepest = tokens, 0, 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else "}"

    def skip_group(self):
        depth = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            depth += (token in "([{") - (token in ")]}")
            if depth <= 0:
                return

    def skip_simple(self):
        while self.peek() not in (";", "}"):
            if self.peek() in "([{":
                self.skip_group()
            else:
                self.at += 1
        if self.peek() == ";":
            self.at += 1

    def block(self, depth):
        self.at += 1
        while self.at < len(self.tokens) and self.peek() != "}":
            self.statement(depth)
        self.at += 1

    def control(self, depth):
        word = self.peek()
        self.deepest = max(self.deepest, depth + 1)
        self.at += 1
        if self.peek() == "(":
            self.skip_group()
        self.statement(depth + 1)
        if word == "do" and self.peek() == "while":
            self.skip_simple()
        while word == "if" and self.peek() == "else":
            self.at += 1
            if self.peek() == "if":
                self.at += 1
                self.skip_group()
            self.statement(depth + 1)

    def statement(self, depth):
        token = self.peek()
        if token == "{":
            self.block(depth)
        elif token in ("if", "for", "while", "switch", "do"):
            self.control(depth)
        elif token in ("case", "default"):
            while self.peek() not in (":", "}"):
                self.at += 1
            self.at += 1
        else:
            self.skip_simple()


def nesting_of(body):
    reader = BodyReader(TOKEN.findall(body))
    reader.block(0)
    return reader.deepest


def count_params(signature):
    inside = signature[signature.index("(") + 1:]
    depth, n_comma, end = 0, 0, len(inside)
    for i, c in enumerate(inside):
        if c == ")" and depth == 0:
            end = i
            break
        depth += (c in "([") - (c in ")]")
        n_comma += c == "," and depth == 0
    return 0 if inside[:end].strip() in ("", "void") else n_comma + 1


def signature_start(lines, brace):
    """First line of the signature whose opening brace stands alone on line `brace`."""
    at = brace
    while at > 0 and lines[at - 1].strip() and not re.search(r"[;}]\s*$|:\s*$", lines[at - 1]):
        at -= 1
    return at


def functions(code):
    """Functions of comment- and directive-free code."""
    lines = code.split("\n")
    found = []
    for brace, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        start = signature_start(lines, brace)
        signature = " ".join(lines[start:brace])
        name = re.search(r"(\w+)\s*\(", re.sub(r"__\w+__\s*\(\(?[^()]*\)?\)|__launch_bounds__\s*\([^()]*\)", " ", signature))
        if not name or "=" in signature:
            continue
        end = next((i for i in range(brace, len(lines)) if lines[i].startswith("}")), len(lines) - 1)
        found.append(Function(
            name=name.group(1), line=start + 1, n_line=end - start + 1,
            n_param=count_params(signature[signature.index(name.group(1)):]),
            nesting=nesting_of("\n".join(lines[brace:end + 1])),
            is_kernel="__global__" in signature or re.search(r"\bkernel\s+void\b", signature) is not None))
    return found


def top_level_declarations(code):
    """(line, text) of declarations outside any braces, initialisers cut off; function bodies left out."""
    found, text, depth, line, start = [], "", 0, 1, 1
    for c in code:
        if c == "\n":
            line += 1
        if depth == 0 and not text.strip():
            start, text = line, ""
        if c == "{":
            depth += 1
            text += "{" if depth == 1 else ""
        elif c == "}":
            depth -= 1
            text += "}" if depth == 0 else ""
            if depth == 0 and re.search(r"\)\s*\{\}$", text):
                text = ""
        elif c == ";" and depth == 0:
            found.append((start, " ".join(text.split())))
            text = ""
        elif depth == 0:
            text += c
    return found


def is_mutable_variable(declaration):
    head = re.sub(r"^(?:[A-Z][A-Z0-9_]*\([^()]*\)\s*)+", "", declaration.split("=")[0].strip())  # list macros
    head = re.sub(r"^template\s*<[^<>]*>\s*", "", head)
    if re.match(r"(typedef|extern|_Static_assert|static_assert)\b", head) or re.search(r"\)\s*(__attribute__\b.*)?$", head):
        return False
    if re.fullmatch(r"(static\s+)?(struct|union|enum)(\s+\w+(\s*<[^<>]*>)?)?(\s*:[^{]*)?(\s*\{\})?", head) or not re.search(r"\w\s+\**\w|\*\s*\w|\}\s*\w", head):
        return False
    after_star = head.rsplit("*", 1)[1] if "*" in head else head
    return re.search(r"\bconst\b", after_star) is None


def mutable_globals(code):
    """(line, text) of file-scope variables and function-local statics that can change."""
    found = [(line, text) for line, text in top_level_declarations(code) if is_mutable_variable(text)]
    for i, line in enumerate(code.split("\n")):
        local = re.match(r"\s+static\s+(?!inline\b)([^;={(]*[\w\]])\s*[;=]", line)
        if local and is_mutable_variable(local.group(1)):
            found.append((i + 1, line.strip()))
    return found
