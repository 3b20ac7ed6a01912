#!/usr/bin/env python3
"""The style card (CONTRIBUTING.md) as a program: includes, sizes, names, words, environment, globals, #if density.

Prints `file:line: rule: what was found, what is allowed`; fails when there is any finding that tests/check/waivers.txt
does not excuse, when a waiver excuses nothing, and when there are more waivers than in the last commit."""
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

from c_source import blank_comments, blank_preprocessor, functions, mutable_globals

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WAIVERS = "tests/check/waivers.txt"

# Who may include whom. A folder may always include itself; "hadal.h" is the public header.
L2 = ("base", "tensor", "ops")
L4 = ("base", "tensor", "format", "text", "ops", "backend", "store", "kv", "model")
INCLUDES = {
    "base": (),
    "tensor": ("base",),
    "format": ("base", "tensor"),
    "text": ("base",),
    "ops": ("base", "tensor"),
    "backend": L2,
    "store": (*L2, "format", "backend"),
    "kv": (*L2, "backend", "store", "model"),
    "model": L4,
    "generate": (*L4, "hadal.h"),
    "engine": (*L4, "generate", "hadal.h"),
    "convert": ("base", "text", "tensor", "format", "model", "hadal.h"),
    "server": ("base", "text", "hadal.h"),
    "agent": ("base", "text", "hadal.h"),
    "cli": ("base", "text", "hadal.h", "convert/convert.h", "server/server.h", "agent/agent.h"),
}
PROGRAMS = ("cli", "convert", "server", "agent")

SOURCE_LINES, HEADER_LINES, FUNCTION_LINES, KERNEL_LINES, PARAMS, NESTING = 800, 300, 80, 120, 6, 3
LONG_HEADERS = {"include/hadal.h": 500, "src/ops/op_list.h": 500}
IF_PER_1000_LINES = 3
NO_IF = ("model", "generate", "engine", "server")

BAD_NAME = re.compile(r"(^|_)(util|utils|common|misc|helper|helpers|stuff)(_|\.|$)")
VERSION_WORD = re.compile(r"(?<![A-Za-z0-9])[vV]4(?:[._]?1)?(?![0-9A-Za-z])|is_v41?\b")
VERSION_FILES = re.compile(r"(^|/)(config\w*|plan|dialect\w*)\.[ch]$")
BANNED_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK|WIP)\b|\b(for now|quick fix|work in progress|temporary hack)\b", re.I)
ENVIRONMENT = re.compile(r"\b(getenv|secure_getenv|setenv|putenv|unsetenv|environ)\b")
ALLOCATION = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign|asprintf)\s*\(")
ENDING = re.compile(r"(?<![\w.>])(exit|_exit|abort|printf|puts|putchar|perror)\s*\(|fprintf\s*\(\s*std(out|err)\b")


@dataclass
class Finding:
    path: str
    line: int
    rule: str
    subject: str  # function, or "-"
    text: str

    def __str__(self):
        where = "" if self.subject == "-" else f" {self.subject}:"
        return f"{self.path}:{self.line}: {self.rule}:{where} {self.text}"

    def key(self):
        return self.rule, self.path, self.subject


def folder_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else ""


def check_includes(path, text):
    folder = folder_of(path)
    allowed = INCLUDES.get(folder)
    if allowed is None:
        yield Finding(path, 1, "include", "-", f"src/{folder} has no row in the table of {pathlib.Path(__file__).name}")
        return
    for i, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match:
            continue
        name = match.group(1)
        if name.endswith(".c"):
            yield Finding(path, i, "include", "-", f"includes the source file {name}")
        if name in allowed or name.split("/")[0] in (folder, *allowed):
            continue
        yield Finding(path, i, "include", "-", f"includes {name}; {folder} may see {', '.join(allowed) or 'itself'}")


def check_sizes(path, text, code):
    n_line = text.count("\n")
    is_header = path.endswith(".h")
    limit = LONG_HEADERS.get(path, HEADER_LINES if is_header else SOURCE_LINES)
    if n_line > limit:
        yield Finding(path, 1, "file-lines", "-", f"{n_line} lines, at most {limit}")
    for f in functions(code):
        longest = KERNEL_LINES if f.is_kernel else FUNCTION_LINES
        if f.n_line > longest:
            yield Finding(path, f.line, "function-lines", f.name, f"{f.n_line} lines, at most {longest}")
        if f.n_param > PARAMS and not f.is_kernel:
            yield Finding(path, f.line, "params", f.name, f"{f.n_param} parameters, at most {PARAMS}")
        if f.nesting > NESTING:
            yield Finding(path, f.line, "nesting", f.name, f"{f.nesting} levels, at most {NESTING}")


def matches(path, code, rule, pattern, text):
    for i, line in enumerate(code.split("\n"), 1):
        found = pattern.search(line)
        if found:
            yield Finding(path, i, rule, "-", f"{found.group(0).strip(' (')}: {text}")


def check_words(path, text, code):
    folder = folder_of(path)
    name = pathlib.PurePath(path).name
    if BAD_NAME.search(name):
        yield Finding(path, 1, "name", "-", f"{name} says nothing about its subject")
    with_strings = blank_comments(text, blank_strings=False)
    if not VERSION_FILES.search(path):
        yield from matches(path, with_strings, "version-word", VERSION_WORD, "belongs in config, plan or dialect")
        if VERSION_WORD.search(name.replace("_", " ")):
            yield Finding(path, 1, "version-word", "-", f"{name}: a file is named after what it does")
    yield from matches(path, text, "word", BANNED_WORDS, "say what is true today, or file an issue")
    if name != "main.c":
        yield from matches(path, code, "environment", ENVIRONMENT, "only main.c reads the environment")
    if path not in ("src/base/arena.c", "src/base/memory.c"):
        yield from matches(path, code, "allocation", ALLOCATION, "memory comes from base/arena.h")
    if folder not in ("cli", "agent") and name not in ("main.c", "log.c"):
        yield from matches(path, code, "printing", ENDING, "only programs print and exit")


def check_globals(path, code):
    if pathlib.PurePath(path).name in ("main.c", "log.c"):
        return
    for line, text in mutable_globals(code):
        yield Finding(path, line, "global", "-", f"`{text[:60]}` can change; pass it instead")


def count_conditionals(path, text):
    lines = re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*$", blank_comments(text), re.M)
    has_guard = path.endswith(".h") and any(re.match(r"\s*#\s*ifndef\s+\w+_H\b", line) for line in lines)
    return len(lines) - has_guard


def check_conditionals(sources):
    totals = {}
    for path, text in sources.items():
        folder = folder_of(path)
        n_if, n_line = totals.get(folder, (0, 0))
        totals[folder] = n_if + count_conditionals(path, text), n_line + text.count("\n")
    for folder, (n_if, n_line) in totals.items():
        allowed = 0 if folder in NO_IF else max(1, IF_PER_1000_LINES * n_line // 1000)
        if n_if > allowed:
            yield Finding(f"src/{folder}", 1, "conditionals", "-", f"{n_if} #if lines in {n_line}, at most {allowed}")


def check_source(path, text):
    code = blank_preprocessor(blank_comments(text))
    if path.startswith("src/"):
        yield from check_includes(path, text)
        yield from check_words(path, text, code)
        yield from check_globals(path, code)
    yield from check_sizes(path, text, code)


def check_all(sources):
    found = []
    for path, text in sources.items():
        found += check_source(path, text)
    found += check_conditionals({p: t for p, t in sources.items() if p.startswith("src/")})
    return found


def read_sources(root=ROOT):
    patterns = ("include/*.h", "src/**/*.[ch]", "src/**/*.cu", "src/**/*.cuh", "src/**/*.m", "src/**/*.metal",
                "tests/**/*.[ch]", "bench/**/*.[ch]")
    paths = sorted({p for pattern in patterns for p in root.glob(pattern)})
    return {p.relative_to(root).as_posix(): p.read_text() for p in paths}


def parse_waivers(text):
    """Lines `rule path subject reason`; # starts a comment."""
    rows = [line.split(None, 3) for line in text.split("\n") if line.strip() and not line.startswith("#")]
    for row in rows:
        if len(row) < 4:
            raise SystemExit(f"{WAIVERS}: `{' '.join(row)}` needs rule, path, subject and reason")
    return {tuple(row[:3]): row[3] for row in rows}


def committed_waivers(root=ROOT):
    shown = subprocess.run(["git", "show", f"HEAD:{WAIVERS}"], cwd=root, capture_output=True, text=True)
    return parse_waivers(shown.stdout) if shown.returncode == 0 else None


def judge(findings, waivers, committed):
    """What is wrong after waivers: lines to print."""
    problems = [str(f) for f in findings if f.key() not in waivers]
    used = {f.key() for f in findings}
    problems += [f"{WAIVERS}: {' '.join(key)} excuses nothing; remove it" for key in waivers if key not in used]
    if committed is not None and len(waivers) > len(committed):
        problems.append(f"{WAIVERS}: {len(waivers)} waivers, {len(committed)} before; the list may only shrink")
    return problems


def main():
    sources = read_sources()
    waivers = parse_waivers((ROOT / WAIVERS).read_text())
    problems = judge(check_all(sources), waivers, committed_waivers())
    print("\n".join(problems + [f"{len(sources)} files, {len(problems)} problems, {len(waivers)} waivers"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
