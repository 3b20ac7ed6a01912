"""A simulated workspace: a file tree in memory and the five tools that act on it.

The result texts are a contract: the models are trained on them, so a real agent should answer in
the same words.

    read    the file's text                     error: no such file: PATH
    write   wrote PATH
    edit    edited PATH                         error: text not found in PATH
                                                error: text occurs N times in PATH
    search  PATH:LINE: TEXT per hit             no matches
    bash    standard output and error, then [exit STATUS] unless 0; (no output) if empty

bash knows: cat, ls, wc -l, grep [-n] [-r], head/tail -n, echo TEXT >> FILE, rm, mv, cp, mkdir -p,
python FILE. Paths are relative to the workspace. No real file or process is touched.
"""

import shlex

from . import minipy

TOOLS = [{"type": "function", "function": f} for f in (
    {"name": "bash", "description": "Run a shell command.", "parameters": {
        "type": "object", "properties": {"command": {"type": "string"}},
        "required": ["command"]}},
    {"name": "read", "description": "Read a file.", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
    {"name": "write", "description": "Write a file.", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"},
                                         "content": {"type": "string"}},
        "required": ["path", "content"]}},
    {"name": "edit", "description": "Replace a text that occurs once in a file.", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}, "old": {"type": "string"},
                                         "new": {"type": "string"}},
        "required": ["path", "old", "new"]}},
    {"name": "search", "description": "Find a text in all files.", "parameters": {
        "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
)]
REQUIRED = {t["function"]["name"]: t["function"]["parameters"]["required"] for t in TOOLS}
MAX_HITS = 20


def normal(path):
    return path.strip().removeprefix("./").rstrip("/")


class Workspace:
    """files: path -> text."""

    def __init__(self, files=()):
        self.files = dict(files)

    def call(self, name, arguments):
        """Run one tool call and return its result text."""
        if name not in REQUIRED:
            return f"error: unknown tool: {name}"
        for key in REQUIRED[name]:
            if not isinstance(arguments.get(key), str):
                return f"error: missing parameter: {key}"
        return getattr(self, "tool_" + name)(*(arguments[k] for k in REQUIRED[name]))

    def tool_read(self, path):
        return self.files.get(normal(path), f"error: no such file: {path}")

    def tool_write(self, path, content):
        self.files[normal(path)] = content
        return f"wrote {path}"

    def tool_edit(self, path, old, new):
        text = self.files.get(normal(path))
        if text is None:
            return f"error: no such file: {path}"
        n = text.count(old) if old else 0
        if n == 0:
            return f"error: text not found in {path}"
        if n > 1:
            return f"error: text occurs {n} times in {path}"
        self.files[normal(path)] = text.replace(old, new)
        return f"edited {path}"

    def tool_search(self, text):
        return "\n".join(self.hits(text, self.files)) or "no matches"

    def hits(self, text, paths):
        out = [f"{path}:{i}: {line}" for path in sorted(paths)
               for i, line in enumerate(self.files[path].split("\n"), 1) if text and text in line]
        return out[:MAX_HITS]

    def tool_bash(self, command):
        out, status = self.shell(command)
        out = out.rstrip("\n")
        if status:
            out += ("\n" if out else "") + f"[exit {status}]"
        return out or "(no output)"

    # ---- the emulated shell: every command returns (output, status) ----

    def shell(self, command):
        out, status = "", 0
        for part in command.split("&&"):
            try:
                words = shlex.split(part)
            except ValueError as e:
                return out + f"bash: {e}\n", 2
            more, status = self.run_words(words)
            out += more
            if status:
                break
        return out, status

    def run_words(self, words):
        target = None
        append = False
        for op in (">>", ">"):
            if op in words:
                at = words.index(op)
                if at + 1 >= len(words):
                    return "bash: syntax error\n", 2
                target, append, words = normal(words[at + 1]), op == ">>", words[:at]
                break
        if not words:
            return "", 0
        method = getattr(self, "sh_" + words[0].replace("python3", "python"), None)
        if method is None:
            return f"bash: {words[0]}: command not found\n", 127
        out, status = method(words[1:])
        if target is not None:
            self.files[target] = (self.files.get(target, "") if append else "") + out
            out = ""
        return out, status

    def is_dir(self, path):
        return path in ("", ".") or any(f.startswith(path + "/") for f in self.files)

    def sh_echo(self, args):
        return " ".join(args) + "\n", 0

    def sh_cat(self, args):
        out = ""
        for a in map(normal, args):
            if a not in self.files:
                return out + f"cat: {a}: No such file or directory\n", 1
            out += self.files[a]
        return out, 0

    def sh_ls(self, args):
        path = normal(next((a for a in args if not a.startswith("-")), "."))
        if path in self.files:
            return path + "\n", 0
        if not self.is_dir(path):
            return f"ls: cannot access '{path}': No such file or directory\n", 2
        prefix = "" if path in ("", ".") else path + "/"
        names = {f[len(prefix):].split("/")[0] for f in self.files if f.startswith(prefix)}
        return "".join(n + "\n" for n in sorted(names)), 0

    def sh_wc(self, args):
        out = ""
        for a in (normal(a) for a in args if not a.startswith("-")):
            if a not in self.files:
                return out + f"wc: {a}: No such file or directory\n", 1
            out += f"{self.files[a].count(chr(10))} {a}\n"
        return out, 0

    def _lines(self, args, name, pick):
        n, paths, at = 10, [], 0
        while at < len(args):
            if args[at] == "-n" and at + 1 < len(args) and args[at + 1].isdigit():
                n, at = int(args[at + 1]), at + 1
            elif args[at][0:1] == "-" and args[at][1:].isdigit():
                n = int(args[at][1:])
            else:
                paths.append(normal(args[at]))
            at += 1
        if len(paths) != 1 or paths[0] not in self.files:
            return f"{name}: cannot open '{' '.join(paths)}'\n", 1
        return "".join(pick(self.files[paths[0]].splitlines(keepends=True), n)), 0

    def sh_head(self, args):
        return self._lines(args, "head", lambda lines, n: lines[:n])

    def sh_tail(self, args):
        return self._lines(args, "tail", lambda lines, n: lines[-n:] if n else [])

    def sh_grep(self, args):
        flags = "".join(a[1:] for a in args if a.startswith("-"))
        rest = [a for a in args if not a.startswith("-")]
        if not rest:
            return "usage: grep PATTERN FILE\n", 2
        where = [normal(a) for a in rest[1:]] or ["."]
        paths = [f for f in self.files if any(
            f == w or w in ("", ".") or f.startswith(w + "/") for w in where)]
        hits = self.hits(rest[0], paths)
        if where != ["."] and len(where) == 1 and where[0] in self.files:
            hits = [h[len(where[0]) + 1:] for h in hits]
            hits = [h.replace(": ", ":", 1) if "n" in flags else h.split(": ", 1)[1]
                    for h in hits]
        if "c" in flags:
            return f"{len(hits)}\n", 0 if hits else 1
        return "".join(h + "\n" for h in hits), 0 if hits else 1

    def sh_rm(self, args):
        for a in (normal(a) for a in args if not a.startswith("-")):
            if a not in self.files:
                return f"rm: cannot remove '{a}': No such file or directory\n", 1
            del self.files[a]
        return "", 0

    def _two(self, args, name):
        paths = [normal(a) for a in args if not a.startswith("-")]
        if len(paths) != 2:
            return None, None, (f"{name}: missing file operand\n", 1)
        if paths[0] not in self.files:
            return None, None, (f"{name}: cannot stat '{paths[0]}': No such file or directory\n",
                                1)
        if self.is_dir(paths[1]):
            paths[1] = paths[1] + "/" + paths[0].split("/")[-1]
        return paths[0], paths[1], ("", 0)

    def sh_mv(self, args):
        a, b, result = self._two(args, "mv")
        if a:
            self.files[b] = self.files.pop(a)
        return result

    def sh_cp(self, args):
        a, b, result = self._two(args, "cp")
        if a:
            self.files[b] = self.files[a]
        return result

    def sh_mkdir(self, args):
        return "", 0

    def sh_python(self, args):
        if len(args) != 1 or normal(args[0]) not in self.files:
            name = args[0] if args else ""
            return f"python: can't open file '{name}': No such file or directory\n", 2
        return minipy.run_script(self.files, normal(args[0]))
