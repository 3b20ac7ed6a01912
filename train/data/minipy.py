"""A small, step-limited interpreter for the Python subset that workspace scripts use.

Why: the simulated shell must run scripts the model has edited, deterministically and without
giving model-written text any access to this process. Only names, numbers, strings, lists, dicts,
arithmetic, comparisons, if, for, while, def, return, assert, print and import of workspace files
exist. Errors come out in CPython's wording, with one traceback frame.
"""

import ast
import difflib
import operator

MAX_STEPS = 5000
MAX_OUTPUT = 2000

BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
          ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
COMPARE = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
           ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
           ast.In: lambda a, b: a in b}
METHODS = {str: {"upper", "lower", "split", "strip", "join", "replace", "startswith"},
           list: {"append"}, dict: {"get", "items", "keys", "values"}}


class ScriptError(Exception):
    """An exception of the interpreted program: kind, message, and the line it happened at."""

    def __init__(self, kind, message, line=0, path=None):
        super().__init__(message)
        self.kind, self.message, self.line, self.path = kind, message, line, path


class _Return(Exception):
    pass


class _Function:
    def __init__(self, node, module):
        self.node, self.module = node, module


def _is_small(value):
    if isinstance(value, (str, list)):
        return len(value) < 10000
    return not isinstance(value, int) or abs(value) < 10 ** 30


class Module:
    """One file being run: its globals, and the loader that finds imported files."""

    def __init__(self, path, source, run):
        self.path, self.source, self.run = path, source, run
        self.globals = {"__name__": "__main__"}

    def execute(self):
        try:
            tree = ast.parse(self.source)
        except SyntaxError as e:
            raise ScriptError("SyntaxError", e.msg, e.lineno or 0, self.path) from e
        self.block(tree.body, self.globals)

    def block(self, body, env):
        for node in body:
            try:
                self.statement(node, env)
            except ScriptError as e:
                if e.path is None:
                    e.path, e.line = self.path, node.lineno
                raise
            except (_Return, RecursionError):
                raise
            except Exception as e:      # a Python error of the interpreted expression
                raise ScriptError(type(e).__name__, str(e), node.lineno, self.path) from e

    def statement(self, node, env):
        self.run.step()
        method = getattr(self, "do_" + type(node).__name__, None)
        if method is None:
            raise ScriptError("SyntaxError", "invalid syntax")
        method(node, env)

    def do_Expr(self, node, env):
        self.value(node.value, env)

    def do_Pass(self, node, env):
        pass

    def do_Assign(self, node, env):
        value = self.value(node.value, env)
        for target in node.targets:
            self.assign(target, value, env)

    def do_AugAssign(self, node, env):
        left = self.value(ast.copy_location(_as_load(node.target), node), env)
        self.assign(node.target, self.binary(node.op, left, self.value(node.value, env)), env)

    def do_If(self, node, env):
        self.block(node.body if self.value(node.test, env) else node.orelse, env)

    def do_For(self, node, env):
        for item in self.value(node.iter, env):
            self.assign(node.target, item, env)
            self.block(node.body, env)

    def do_While(self, node, env):
        while self.value(node.test, env):
            self.block(node.body, env)

    def do_FunctionDef(self, node, env):
        env[node.name] = _Function(node, self)

    def do_Return(self, node, env):
        raise _Return(None if node.value is None else self.value(node.value, env))

    def do_Assert(self, node, env):
        if not self.value(node.test, env):
            message = "" if node.msg is None else str(self.value(node.msg, env))
            raise ScriptError("AssertionError", message)

    def do_ImportFrom(self, node, env):
        module = self.run.load(node.module)
        for alias in node.names:
            if alias.name not in module.globals:
                raise ScriptError("ImportError", f"cannot import name '{alias.name}' from "
                                  f"'{node.module}' ({module.path})")
            env[alias.asname or alias.name] = module.globals[alias.name]

    def assign(self, target, value, env):
        if not _is_small(value):
            raise ScriptError("MemoryError", "")
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, ast.Tuple):
            for t, v in zip(target.elts, value, strict=True):
                self.assign(t, v, env)
        elif isinstance(target, ast.Subscript):
            self.value(target.value, env)[self.value(target.slice, env)] = value
        else:
            raise ScriptError("SyntaxError", "cannot assign")

    def value(self, node, env):
        self.run.step()
        method = getattr(self, "get_" + type(node).__name__, None)
        if method is None:
            raise ScriptError("SyntaxError", "invalid syntax")
        return method(node, env)

    def get_Constant(self, node, env):
        return node.value

    def get_Name(self, node, env):
        name = node.id
        for scope in (env, self.globals):
            if name in scope:
                return scope[name]
        if name in BUILTINS:
            return BUILTINS[name]
        known = [*env, *self.globals, *BUILTINS]
        near = difflib.get_close_matches(name, known, 1, 0.7)
        hint = f". Did you mean: '{near[0]}'?" if near else ""
        raise ScriptError("NameError", f"name '{name}' is not defined{hint}")

    def get_List(self, node, env):
        return [self.value(e, env) for e in node.elts]

    def get_Tuple(self, node, env):
        return tuple(self.value(e, env) for e in node.elts)

    def get_Dict(self, node, env):
        return {self.value(k, env): self.value(v, env) for k, v in zip(node.keys, node.values)}

    def get_Subscript(self, node, env):
        return self.value(node.value, env)[self.value(node.slice, env)]

    def get_UnaryOp(self, node, env):
        value = self.value(node.operand, env)
        return (not value) if isinstance(node.op, ast.Not) else -value

    def get_BinOp(self, node, env):
        return self.binary(node.op, self.value(node.left, env), self.value(node.right, env))

    def binary(self, op, left, right):
        if type(op) not in BINARY:
            raise ScriptError("SyntaxError", "invalid syntax")
        if isinstance(op, ast.Mult) and not (isinstance(left, (int, float))
                                             and isinstance(right, (int, float))):
            sizes = [x for x in (left, right) if isinstance(x, int)]
            if sizes and abs(sizes[0]) > 1000:
                raise ScriptError("MemoryError", "")
        result = BINARY[type(op)](left, right)
        if not _is_small(result):
            raise ScriptError("MemoryError", "")
        return result

    def get_BoolOp(self, node, env):
        is_and = isinstance(node.op, ast.And)
        value = None
        for e in node.values:
            value = self.value(e, env)
            if bool(value) != is_and:
                break
        return value

    def get_Compare(self, node, env):
        left = self.value(node.left, env)
        for op, right_node in zip(node.ops, node.comparators):
            right = self.value(right_node, env)
            if not COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def get_JoinedStr(self, node, env):
        return "".join(str(self.value(v.value if isinstance(v, ast.FormattedValue) else v, env))
                       for v in node.values)

    def get_Call(self, node, env):
        args = [self.value(a, env) for a in node.args]
        if node.keywords:
            raise ScriptError("TypeError", "keyword arguments are not supported")
        if isinstance(node.func, ast.Attribute):
            target = self.value(node.func.value, env)
            if node.func.attr not in METHODS.get(type(target), ()):
                raise ScriptError("AttributeError", f"'{type(target).__name__}' object has no "
                                  f"attribute '{node.func.attr}'")
            return getattr(target, node.func.attr)(*args)
        function = self.value(node.func, env)
        if isinstance(function, _Function):
            return function.module.call(function.node, args)
        if function is print:
            return self.run.print(*args)
        if not callable(function):
            raise ScriptError("TypeError", f"'{type(function).__name__}' object is not callable")
        return function(*args)

    def call(self, node, args):
        names = [a.arg for a in node.args.args]
        if len(names) != len(args):
            raise ScriptError("TypeError", f"{node.name}() takes {len(names)} positional "
                              f"arguments but {len(args)} were given")
        with self.run.frame():
            try:
                self.block(node.body, dict(zip(names, args)))
            except _Return as r:
                return r.args[0]
        return None


BUILTINS = {"print": print, "len": len, "sum": sum, "min": min, "max": max, "abs": abs,
            "str": str, "int": int, "round": round, "sorted": sorted, "list": list,
            "range": lambda *a: list(range(*a))[:1000] if max(map(abs, a)) <= 1000 else []}


def _as_load(target):
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    return ast.Subscript(target.value, target.slice, ast.Load())


class Run:
    """One execution: files, output, and the budget that stops endless loops."""

    def __init__(self, files):
        self.files, self.out, self.steps, self.depth = files, [], 0, 0

    def step(self):
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise ScriptError("TimeoutError", "the script ran too long")

    def frame(self):
        self.depth += 1
        if self.depth > 40:
            raise ScriptError("RecursionError", "maximum recursion depth exceeded")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.depth -= 1

    def print(self, *args):
        self.out.append(" ".join(str(a) for a in args) + "\n")

    def load(self, name):
        tail = "/" + (name or "").replace(".", "/") + ".py"
        for path in sorted(self.files):
            if ("/" + path).endswith(tail):
                module = Module(path, self.files[path], self)
                module.globals["__name__"] = name
                with self.frame():
                    module.execute()
                return module
        raise ScriptError("ModuleNotFoundError", f"No module named '{name}'")


def run_script(files, path):
    """Run files[path]. Returns (output text including a traceback, exit status)."""
    run = Run(files)
    status = 0
    try:
        Module(path, files[path], run).execute()
    except ScriptError as e:
        where = e.path or path
        lines = files.get(where, "").split("\n")
        code = lines[e.line - 1].strip() if 0 < e.line <= len(lines) else ""
        message = f"{e.kind}: {e.message}" if e.message else e.kind
        run.out.append(f'Traceback (most recent call last):\n  File "{where}", line {e.line}\n'
                       f"    {code}\n{message}\n")
        status = 1
    except (_Return, RecursionError):
        run.out.append("SyntaxError: 'return' outside function\n")
        status = 1
    return "".join(run.out)[:MAX_OUTPUT], status
