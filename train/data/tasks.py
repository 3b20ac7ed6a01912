"""Small workspace tasks: files, a request, the ideal way to do it, and what must be true after.

Why: one description serves both training (the expert's transcript) and evaluation (the checker
compares the model's final files with the expert's and looks for the needed words in the answer).
A family is a function of a Maker; FAMILIES lists them. Experts are generators: they yield Step
objects, receive the tool results, and return the final Step.
"""

from dataclasses import dataclass, field
from typing import Callable

from .names import COLORS, NOUNS, Names
from .workspace import Workspace


@dataclass
class Step:
    """One assistant message: private thought, public text, and calls [(tool, arguments)]."""
    thought: str
    text: str = ""
    calls: list = field(default_factory=list)


@dataclass
class Task:
    family: str
    prompt: str
    files: dict
    expert: Callable
    must: list                  # texts the final answer has to contain
    expected: dict = None       # all files after the expert's work


def act(thought, tool, **arguments):
    return Step(thought, calls=[(tool, arguments)])


def done(thought, text):
    return Step(thought, text)


class Maker:
    """Names, paths and file texts for tasks of one session; paths never repeat."""

    def __init__(self, rng, held_out=False):
        self.rng, self.names = rng, Names(rng, held_out)
        self.used = set()

    def pick(self, *options):
        return self.rng.choice(options)

    def unique(self, draw):
        while True:
            value = draw()
            if value not in self.used:
                self.used.add(value)
                return value

    def key(self):
        return self.unique(self.names.identifier)

    def keys(self, n):
        return [self.key() for _ in range(n)]

    def path(self, kind):
        """A new file path. Kinds: py, config, note, json, csv."""
        dirs = {"py": ("src", "lib", "tools", "scripts", "app"),
                "config": ("config", "etc", "conf"),
                "note": ("notes", "docs"), "json": ("data", "config"), "csv": ("data", "tables")}
        ends = {"py": ("py",), "config": ("ini", "conf", "cfg"), "note": ("md", "txt"),
                "json": ("json",), "csv": ("csv",)}

        def draw():
            stem = self.names.stem()
            folder = self.pick(*dirs[kind]) + "/" if self.rng.random() < 0.75 else ""
            return f"{folder}{stem}.{self.pick(*ends[kind])}"
        return self.unique(draw)

    def amounts(self, n):
        out = []
        while len(out) < n:
            x = self.names.amount()
            if x not in out:
                out.append(x)
        return out

    def config(self, n=None):
        """Settings: (path, text, lines, keys, values)."""
        n = n or self.rng.randint(2, 6)
        keys, values = self.keys(n), [str(v) for v in self.amounts(n)]
        if self.rng.random() < 0.25:
            values = [v if self.rng.random() < 0.5 else self.names.word() for v in values]
        eq = self.pick(" = ", " = ", ": ", "=")
        lines = [k + eq + v for k, v in zip(keys, values)]
        return self.path("config"), "\n".join(lines) + "\n", lines, keys, values, eq

    def sentence(self):
        n = self.names
        return self.pick(
            lambda: f"The {n.word()} {self.pick(*NOUNS)} is {self.pick(*COLORS)}.",
            lambda: f"Ask {n.title()} about the {n.word()} {self.pick(*NOUNS)}.",
            lambda: f"Buy {self.rng.randint(2, 40)} {self.pick(*COLORS)} {self.pick(*NOUNS)}s.",
            lambda: f"{n.title()} needs the {self.pick(*NOUNS)} before noon.",
            lambda: f"Check the {n.word()} {self.pick(*NOUNS)} again.",
            lambda: f"Send the {self.pick(*NOUNS)} to {n.title()}.")()

    def note(self, n=None):
        lines = [self.sentence() for _ in range(n or self.rng.randint(2, 6))]
        if self.rng.random() < 0.4:
            lines.insert(0, "# " + self.names.word())
        return self.path("note"), lines

    def other_files(self):
        """One or two files that have nothing to do with the task."""
        files = {}
        for _ in range(self.rng.randint(0, 2)):
            if self.rng.random() < 0.5:
                path, text = self.config()[:2]
            else:
                path, lines = self.note()
                text = "\n".join(lines) + "\n"
            files[path] = text
        return files


def set_value(m):
    path, text, lines, keys, values, eq = m.config()
    i = m.rng.randrange(len(keys))
    new = str(m.names.amount()) if values[i].isdigit() else m.names.word()
    key = keys[i]
    prompt = m.pick(f"Set {key} to {new} in {path}.", f"Change {key} in {path} to {new}.",
                    f"In {path}, change {key} from {values[i]} to {new}.",
                    f"Please update {path} so that {key} is {new}.",
                    f"{key} in {path} should be {new}.", f"Make {key} {new} in {path}, please.",
                    f"Can you set {key} to {new}? It is in {path}.")

    def expert():
        yield act(f"I read {path} first.", "read", path=path)
        yield act(f"The line is {lines[i]}. I change it.", "edit", path=path, old=lines[i],
                  new=key + eq + new)
        return done("The edit worked.", f"I set {key} to {new} in {path}.")
    return Task("set_value", prompt, {path: text, **m.other_files()}, expert, [key, new])


def find_definition(m):
    files = {}
    for _ in range(m.rng.randint(2, 3)):
        n = m.rng.randint(1, 3)
        keys = [k.upper() for k in m.keys(n)]
        values = [str(v) for v in m.amounts(n)]
        path = m.path("py")
        files[path] = "\n".join(f"{k} = {v}" for k, v in zip(keys, values)) + "\n"
    i = m.rng.randrange(len(keys))
    key, value = keys[i], values[i]
    prompt = m.pick(f"Which file defines {key} and what is its value?",
                    f"Find the file that defines {key} and tell me the value.",
                    f"Where is {key} defined, and what is it set to?",
                    f"Find {key}. Which file is it in and what is its value?",
                    f"What is the value of {key} and where is it defined?")

    def expert():
        yield act(f"I search for {key}.", "search", text=key)
        return done(f"It is in {path}.", f"{key} is defined in {path} and its value is {value}.")
    return Task("find_definition", prompt, files, expert, [path, value])


def rename_function(m):
    path, old, new = m.path("py"), m.key(), m.key()
    arg = m.pick("a", "x", "n", "value")
    op, k = m.pick("+", "*", "-"), m.rng.randint(2, 9)
    call = f"print({old}({m.rng.randint(2, 60)}))"
    text = f"def {old}({arg}):\n    return {arg} {op} {k}\n\n{call}\n"
    prompt = m.pick(f"Rename the function {old} to {new} in {path}.",
                    f"In {path}, rename {old} to {new}.",
                    f"Please rename {old} in {path} to {new}, including the call.",
                    f"The function {old} in {path} should be called {new}. Rename it.")

    def expert():
        yield act(f"I read {path} first.", "read", path=path)
        yield act("I rename the definition.", "edit", path=path, old=f"def {old}({arg}):",
                  new=f"def {new}({arg}):")
        yield act("I rename the call.", "edit", path=path, old=call, new=call.replace(old, new))
        return done("Both places are renamed.", f"I renamed {old} to {new} in {path}.")
    return Task("rename_function", prompt, {path: text}, expert, [old, new])


def append_line(m):
    path, lines = m.note()
    line = m.sentence()
    prompt = m.pick(f'Add the line "{line}" to the end of {path}.',
                    f'Append "{line}" to {path}.', f'Add this line to {path}: {line}',
                    f'Please put "{line}" at the end of {path}.',
                    f'Write "{line}" as the last line of {path}.')

    def expert():
        yield act("I append the line with echo.", "bash", command=f'echo "{line}" >> {path}')
        return done("The line is there.", f"I added the line to {path}.")
    return Task("append_line", prompt, {path: "\n".join(lines) + "\n", **m.other_files()}, expert,
                [path])


def count_lines(m):
    path, lines = m.note(m.rng.randint(2, 14))
    n = len(lines)
    prompt = m.pick(f"How many lines does {path} have?", f"Count the lines of {path}.",
                    f"Count the lines in {path}.", f"How long is {path} in lines?",
                    f"Tell me the number of lines in {path}.")

    def expert():
        yield act("I count with wc.", "bash", command=f"wc -l {path}")
        return done(f"wc says {n}.", f"{path} has {n} lines.")
    return Task("count_lines", prompt, {path: "\n".join(lines) + "\n", **m.other_files()}, expert,
                [str(n)])


def script(m):
    """A script that prints one line: (text, output)."""
    word, a, b = m.names.word(), m.rng.randint(2, 90), m.rng.randint(2, 90)
    name = m.key()
    return m.pick(
        lambda: (f'{name} = [{a}, {b}]\nprint("{word}", sum({name}))\n', f"{word} {a + b}"),
        lambda: (f'def {name}(x):\n    return x * {b}\n\nprint("{word}", {name}({a}))\n',
                 f"{word} {a * b}"),
        lambda: (f'{name} = {a} + {b}\nprint("{word} is", {name})\n', f"{word} is {a + b}"),
        lambda: (f'{name} = "{word}"\nprint({name} + "-" + str({a * b}))\n', f"{word}-{a * b}"))()


def run_report(m):
    path = m.path("py")
    text, out = script(m)
    prompt = m.pick(f"Run {path} and tell me what it prints.", f"Run {path} and report the output.",
                    f"What does {path} print?", f"Please run {path}. What is the output?",
                    f"Execute {path} and show me the result.")

    def expert():
        yield act(f"I run {path}.", "bash", command=f"python {path}")
        return done("It printed one line.", f"It prints: {out}")
    return Task("run_report", prompt, {path: text, **m.other_files()}, expert, [out])


def misspell(rng, name):
    i = rng.randrange(1, len(name) - 1)
    wrong = name[:i] + name[i + 1:]
    return wrong if wrong != name and not wrong.endswith("_") else name + name[-1]


def fix_name(m):
    path, name, word = m.path("py"), m.key(), m.names.word()
    a, b = m.rng.randint(2, 90), m.rng.randint(2, 90)
    wrong = misspell(m.rng, name)
    head = m.pick(f"{name} = {a} + {b}\n", f"{name} = sum([{a}, {b}])\n")
    line = f'print("{word}", {wrong})'
    right = f'print("{word}", {name})'
    out = f"{word} {a + b}"
    prompt = m.pick(f"Running {path} fails. Fix it and run it again.",
                    f"{path} is broken. Please fix it and tell me the output.",
                    f"Fix {path} and run it.",
                    f"{path} stops with an error. Fix it and run it again.",
                    f"Repair the script {path}, then run it and report what it prints.")

    def expert():
        yield act(f"I run {path} to see the error.", "bash", command=f"python {path}")
        yield act(f"The name {wrong} is wrong. I read the file.", "read", path=path)
        yield act(f"{wrong} should be {name}.", "edit", path=path, old=line, new=right)
        yield act("I run it again.", "bash", command=f"python {path}")
        return done("It works now.",
                    f"I fixed {path}: {wrong} is now {name}. It prints: {out}")
    return Task("fix_name", prompt, {path: head + line + "\n"}, expert, [out])


OPERATORS = {"sum": ("+", lambda a, b: a + b), "difference": ("-", lambda a, b: a - b),
             "product": ("*", lambda a, b: a * b)}


def fix_operator(m):
    path, name = m.path("py"), m.key()
    folder, stem = path.rpartition("/")[0], path.rpartition("/")[2][:-3]
    test = (folder + "/" if folder else "") + f"test_{stem}.py"
    kind = m.pick(*OPERATORS)
    op, compute = OPERATORS[kind]
    wrong = m.pick(*(o for o, _ in OPERATORS.values() if o != op))
    x, y = m.rng.randint(5, 9), m.rng.randint(2, 4)
    files = {path: f"# the {kind} of a and b\ndef {name}(a, b):\n    return a {wrong} b\n",
             test: f"from {stem} import {name}\n\nassert {name}({x}, {y}) == {compute(x, y)}\n"
                   'print("ok")\n'}
    prompt = m.pick(f"The test {test} fails. Fix {path}.",
                    f"{test} fails. Please fix {path} and run the test again.",
                    f"Fix {path} so that {test} passes.",
                    f"Make {test} pass. The error is in {path}.")

    def expert():
        yield act("I run the test first.", "bash", command=f"python {test}")
        yield act(f"The test fails. I read {path}.", "read", path=path)
        yield act(f"The {kind} needs {op}, not {wrong}.", "edit", path=path,
                  old=f"return a {wrong} b", new=f"return a {op} b")
        yield act("I run the test again.", "bash", command=f"python {test}")
        return done("The test passes.", f"I fixed {path}: it returns a {op} b now. "
                    "The test prints: ok")
    return Task("fix_operator", prompt, files, expert, ["ok"])


def create_file(m):
    path = m.path(m.pick("note", "config", "py"))
    if path.endswith(".py"):
        content = script(m)[0].rstrip("\n") if m.rng.random() < 0.4 else \
            f'print("{m.names.word()} {m.names.amount()}")'
    elif path.endswith((".md", ".txt")):
        content = m.sentence()
    else:
        content = f"{m.key()} = {m.names.amount()}"
    prompt = m.pick(f"Create {path} with this content:\n{content}",
                    f"Write a file {path} that contains:\n{content}",
                    f"Make a new file {path} with the text:\n{content}",
                    f"Please create the file {path}. Its content is:\n{content}")

    def expert():
        yield act(f"I write {path}.", "write", path=path, content=content + "\n")
        return done("The file is written.", f"I created {path}.")
    return Task("create_file", prompt, m.other_files(), expert, [path])


def locate_text(m):
    files, target = {}, None
    for _ in range(m.rng.randint(2, 3)):
        path, lines = m.note()
        i = m.rng.randrange(len(lines))
        word = m.unique(m.names.word)
        lines[i] = m.pick(f"Remember the {word} for later.", f"Bring the {word} to the office.",
                          f"The {word} is in the box.", f"Nobody has seen the {word} today.")
        files[path] = "\n".join(lines) + "\n"
        target = (word, path, i + 1)
    word, path, line = target
    prompt = m.pick(f'Where does "{word}" occur? Give the path and the line number.',
                    f'Find "{word}" and report path and line.',
                    f'In which file and line is the word "{word}"?',
                    f'Search for "{word}" and tell me where it is.',
                    f'Which line of which file mentions "{word}"?')

    def expert():
        yield act(f"I search for {word}.", "search", text=word)
        return done("There is one hit.", f'"{word}" is at {path}:{line}.')
    return Task("locate_text", prompt, files, expert, [f"{path}:{line}"])


def follow_path(m):
    note, lines = m.note(m.rng.randint(1, 3))
    path, text, rows, keys, values, eq = m.config(m.rng.randint(2, 4))
    i, new, check = m.rng.randrange(len(keys)), str(m.names.amount()), m.path("py")
    code, out = script(m)
    lines.insert(m.rng.randint(0, len(lines)), m.pick(
        f"The settings are in {path}.", f"The config file is {path}.", f"Settings: {path}"))
    files = {note: "\n".join(lines) + "\n", path: text, check: code}
    prompt = m.pick(
        f"Read {note} to find the settings file, set {keys[i]} to {new} there, then run {check} "
        "and report the output.",
        f"{note} names the config file. Change {keys[i]} to {new} in it, run {check} and tell me "
        "what it prints.",
        f"Look up the settings file in {note}. In that file set {keys[i]} to {new}. Then run "
        f"{check}.")

    def expert():
        yield act(f"I read {note} first.", "read", path=note)
        yield act(f"The settings file is {path}.", "read", path=path)
        yield act(f"The line is {rows[i]}. I change it.", "edit", path=path, old=rows[i],
                  new=keys[i] + eq + new)
        yield act(f"Now I run {check}.", "bash", command=f"python {check}")
        return done("All steps are done.",
                    f"I set {keys[i]} to {new} in {path}. {check} prints: {out}")
    return Task("follow_path", prompt, files, expert, [keys[i], new, out])


def list_folder(m):
    folder = m.unique(m.names.word)
    files = {}
    for _ in range(m.rng.randint(2, 5)):
        files[f"{folder}/{m.unique(m.names.stem)}.{m.pick('txt', 'md', 'py', 'csv')}"] = \
            m.sentence() + "\n"
    names = sorted(f.split("/")[1] for f in files)
    prompt = m.pick(f"Which files are in {folder}?", f"List the files in {folder}.",
                    f"What is in the folder {folder}?", f"Show me the files of {folder}.",
                    f"List the folder {folder}.")

    def expert():
        yield act(f"I list {folder}.", "bash", command=f"ls {folder}")
        return done(f"There are {len(names)} files.", f"{folder} contains: {', '.join(names)}")
    return Task("list_folder", prompt, {**files, **m.other_files()}, expert, names)


def lookup_value(m):
    path, text, lines, keys, values, eq = m.config()
    i = m.rng.randrange(len(keys))
    prompt = m.pick(f"What is {keys[i]} in {path}?", f"What is the value of {keys[i]} in {path}?",
                    f"Read {path} and tell me {keys[i]}.", f"Tell me the {keys[i]} from {path}.",
                    f"Look into {path}. What is {keys[i]} set to?")

    def expert():
        yield act(f"I read {path}.", "read", path=path)
        return done(f"The line is {lines[i]}.", f"{keys[i]} is {values[i]}.")
    return Task("lookup_value", prompt, {path: text, **m.other_files()}, expert, [values[i]])


def json_set(m):
    path, keys = m.path("json"), m.keys(m.rng.randint(2, 5))
    values = [m.names.amount() if m.rng.random() < 0.7 else f'"{m.names.word()}"' for _ in keys]
    rows = [f'  "{k}": {v}' for k, v in zip(keys, values)]
    i = m.rng.randrange(len(keys))
    new = m.names.amount() if isinstance(values[i], int) else f'"{m.names.word()}"'
    shown = str(new).strip('"')
    prompt = m.pick(f"Set {keys[i]} to {shown} in {path}.",
                    f"Change {keys[i]} in {path} to {shown}.",
                    f'In {path}, the field "{keys[i]}" should be {shown}.',
                    f"Update {path}: {keys[i]} is now {shown}.")
    text = "{\n" + ",\n".join(rows) + "\n}\n"

    def expert():
        yield act(f"I read {path} first.", "read", path=path)
        yield act(f"I change the field {keys[i]}.", "edit", path=path,
                  old=f'"{keys[i]}": {values[i]}', new=f'"{keys[i]}": {new}')
        return done("The edit worked.", f"I set {keys[i]} to {shown} in {path}.")
    return Task("json_set", prompt, {path: text, **m.other_files()}, expert, [keys[i], shown])


def csv_lookup(m):
    path, items = m.path("csv"), [m.unique(m.names.word) for _ in range(m.rng.randint(3, 7))]
    a, b = m.rng.sample(("price", "count", "weight", "room", "year"), 2)
    rows = [(w, *m.amounts(2)) for w in items]
    text = f"name,{a},{b}\n" + "".join(f"{w},{x},{y}\n" for w, x, y in rows)
    w, x, y = m.pick(*rows)
    column, value = m.pick((a, x), (b, y))
    prompt = m.pick(f"What is the {column} of {w} in {path}?",
                    f"Look up the {column} of {w} in {path}.",
                    f"Read {path}. What {column} does {w} have?",
                    f"Find the {column} of {w}. The table is {path}.")

    def expert():
        yield act(f"I read the table {path}.", "read", path=path)
        return done(f"The row is {w},{x},{y}.", f"The {column} of {w} is {value}.")
    return Task("csv_lookup", prompt, {path: text}, expert, [f" {value}."])


def delete_file(m):
    path, lines = m.note()
    prompt = m.pick(f"Delete {path}.", f"Remove the file {path}.",
                    f"Please delete the file {path}.",
                    f"We do not need {path} any more. Remove it.")

    def expert():
        yield act(f"I remove {path}.", "bash", command=f"rm {path}")
        return done("The file is gone.", f"I deleted {path}.")
    return Task("delete_file", prompt, {path: "\n".join(lines) + "\n", **m.other_files()}, expert,
                [path])


def move_file(m):
    path, lines = m.note()
    new = m.path("note")
    prompt = m.pick(f"Rename {path} to {new}.", f"Move {path} to {new}.",
                    f"Please move the file {path} to {new}.", f"The file {path} should be {new}.")

    def expert():
        yield act(f"I move it to {new}.", "bash", command=f"mv {path} {new}")
        return done("The file is moved.", f"I moved {path} to {new}.")
    return Task("move_file", prompt, {path: "\n".join(lines) + "\n", **m.other_files()}, expert,
                [new])


def replace_word(m):
    path, lines = m.note()
    old, new = m.unique(m.names.word), m.unique(m.names.word)
    i = m.rng.randrange(len(lines))
    lines[i] = m.pick(f"Give the {old} to Anna.", f"The {old} is ready.",
                      f"We must repair the {old}.",
                      f"Please paint the {old} today.")
    prompt = m.pick(f'Replace "{old}" with "{new}" in {path}.',
                    f'In {path}, change the word "{old}" to "{new}".',
                    f'Change "{old}" to "{new}" in {path}.', f'{path} says "{old}" but it should '
                    f'say "{new}". Fix it.')

    def expert():
        yield act(f"I read {path} first.", "read", path=path)
        yield act("I change the line with the word.", "edit", path=path, old=lines[i],
                  new=lines[i].replace(old, new))
        return done("The edit worked.", f'I replaced "{old}" with "{new}" in {path}.')
    return Task("replace_word", prompt, {path: "\n".join(lines) + "\n"}, expert, [new])


def copy_value(m):
    a, a_text, a_lines, a_keys, a_values, _ = m.config(m.rng.randint(2, 4))
    b, b_text, b_lines, b_keys, b_values, eq = m.config(m.rng.randint(2, 4))
    i, j = m.rng.randrange(len(a_keys)), m.rng.randrange(len(b_keys))
    ka, kb, value = a_keys[i], b_keys[j], a_values[i]
    prompt = m.pick(f"Set {kb} in {b} to the value of {ka} in {a}.",
                    f"Copy the value of {ka} from {a} to {kb} in {b}.",
                    f"{kb} in {b} should have the same value as {ka} in {a}.")

    def expert():
        yield act(f"I read {a} first.", "read", path=a)
        yield act(f"The value is {value}. I read {b}.", "read", path=b)
        yield act(f"I set {kb} to {value}.", "edit", path=b, old=b_lines[j], new=kb + eq + value)
        return done("The edit worked.", f"I set {kb} to {value} in {b}.")
    return Task("copy_value", prompt, {a: a_text, b: b_text}, expert, [kb, value])


def missing_file(m):
    path = m.path(m.pick("note", "config", "py"))
    prompt = m.pick(f"Read {path} and tell me what it says.", f"Show me the content of {path}.",
                    f"What is in {path}?", f"Print the file {path}.")

    def expert():
        yield act(f"I read {path}.", "read", path=path)
        return done("The file is missing.", f"There is no file {path}.")
    return Task("missing_file", prompt, m.other_files(), expert, ["no file"])


def show_file(m):
    path, lines = m.note(m.rng.randint(1, 3))
    text = "\n".join(lines) + "\n"
    prompt = m.pick(f"Read {path} and tell me what it says.", f"Show me the content of {path}.",
                    f"What is in {path}?", f"Print the file {path}.")

    def expert():
        yield act(f"I read {path}.", "read", path=path)
        return done("I show the text.", f"{path} says:\n" + "\n".join(lines))
    return Task("show_file", prompt, {path: text, **m.other_files()}, expert, lines)


FAMILIES = {f.__name__: f for f in (
    set_value, find_definition, rename_function, append_line, count_lines, run_report, fix_name,
    fix_operator, create_file, locate_text, follow_path, list_folder, lookup_value, json_set,
    csv_lookup, delete_file, move_file, replace_word, copy_value, missing_file, show_file)}


def trace(task, workspace):
    """Run the expert on a workspace: [(step, results)], the last one without calls."""
    steps, expert, results = [], task.expert(), None
    while True:
        try:
            step = expert.send(results)
        except StopIteration as stop:
            steps.append((stop.value, []))
            return steps
        results = [workspace.call(name, dict(arguments)) for name, arguments in step.calls]
        if any(r.startswith("error: text") for r in results):
            raise ValueError(f"{task.family}: {results}")     # ambiguous by chance: draw again
        steps.append((step, results))


def make_task(m, family):
    """A task whose expert succeeds, with its expected files."""
    while True:
        task = FAMILIES[family](m)
        workspace = Workspace(task.files)
        try:
            trace(task, workspace)
        except ValueError:
            continue
        task.expected = workspace.files
        return task


def solved(task, files, answer):
    """Whether the final files and the final answer are right."""
    def tidy(tree):
        return {path: text.rstrip() for path, text in tree.items()}
    return tidy(files) == tidy(task.expected) and all(text in answer for text in task.must)
