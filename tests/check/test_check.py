"""The style check: the tree passes, and every rule catches what it is there for."""
import check
import pytest


def test_tree_is_clean():
    sources = check.read_sources()
    waivers = check.parse_waivers((check.ROOT / check.WAIVERS).read_text())
    assert check.judge(check.check_all(sources), waivers, check.committed_waivers()) == []


def lines(n):
    return "".join(f"    x[{i}] = {i};\n" for i in range(n))


BAD = [
    ("include", "src/text/a.c", '#include "model/plan.h"\n'),
    ("include", "src/tensor/a.c", '#include "text/text.h"\n'),
    ("include", "src/cli/a.c", '#include "convert/plan.h"\n'),
    ("include", "src/server/a.c", '#include "cli/options.h"\n'),
    ("include", "src/base/a.c", '#include "base/err.c"\n'),
    ("include", "src/nowhere/a.c", "int x(void);\n"),
    ("file-lines", "src/base/a.c", "\n" * 801),
    ("file-lines", "src/base/a.h", "\n" * 301),
    ("function-lines", "src/base/a.c", "static void f(int *x)\n{\n" + lines(79) + "}\n"),
    ("function-lines", "src/backend/a.cu", "__global__ void k(int *x)\n{\n" + lines(119) + "}\n"),
    ("params", "src/base/a.c", "int f(int a, int b, int c, int d, int e, int (*g)(int, int), int h)\n{\n}\n"),
    ("nesting", "src/base/a.c", "void f(int a)\n{\n    for (;;)\n        while (a)\n            if (a)\n"
     "                do\n                    a--;\n                while (a);\n}\n"),
    ("name", "src/base/util.c", "int x(void);\n"),
    ("name", "src/base/str_helpers.c", "int x(void);\n"),
    ("version-word", "src/model/moe.c", "int is_v41(void);\n"),
    ("version-word", "src/model/moe.c", 'static const char *const x = "V4.1";\n'),
    ("version-word", "src/model/attention_v41.c", "int x(void);\n"),
    ("word", "src/base/a.c", "/* TODO: later */\n"),
    ("word", "src/base/a.c", "/* do it like this for now */\n"),
    ("environment", "src/cli/run.c", 'int f(void)\n{\n    return getenv("X") != 0;\n}\n'),
    ("allocation", "src/text/a.c", "void *f(void)\n{\n    return malloc(3);\n}\n"),
    ("allocation", "src/text/a.c", "void f(void *p)\n{\n    free(p);\n}\n"),
    ("printing", "src/model/a.c", 'void f(void)\n{\n    printf("x");\n}\n'),
    ("printing", "src/server/a.c", "void f(void)\n{\n    exit(1);\n}\n"),
    ("global", "src/base/a.c", "static int count;\n"),
    ("global", "src/base/a.c", "static const char *names[] = {\n    0,\n};\n"),
    ("global", "src/base/a.c", "struct thing {\n    int x;\n} the_thing;\n"),
    ("global", "src/base/a.c", "int f(void)\n{\n    static int calls = 0;\n    return calls++;\n}\n"),
    ("conditionals", "src/model/a.c", "#ifdef X\n#endif\n"),
    ("conditionals", "src/base/a.c", "#ifdef X\n#endif\n#if Y\n#endif\n"),
]


@pytest.mark.parametrize("rule, path, text", BAD)
def test_rule_catches(rule, path, text):
    assert rule in [f.rule for f in check.check_all({path: text})]


GOOD = [
    ("src/model/a.c", '#include "model/plan.h"\n#include "text/text.h"\n#include <stdio.h>\n'),
    ("src/cli/a.c", '#include "hadal.h"\n#include "convert/convert.h"\n'),
    ("src/base/a.h", "#ifndef A_H\n#define A_H\nint x(void);\n#endif\n"),
    ("src/model/config.c", 'static const char *const x = "v41";\n'),
    ("src/ops/a.c", "/* v4 spec 3.2, v41 spec 7.1: \"malloc(3)\" */\nint x(void);\n"),
    ("src/base/a.c", "static const struct row rows[] = {\n    {1, 2},\n};\nextern int y;\ntypedef int z;\n"),
    ("src/base/a.c", "struct s {\n    int x;\n};\nenum { A, B };\nint f(int a, int b);\n"),
    ("src/base/a.c", "int f(int a)\n{\n    if (a)\n        return 1;\n    else if (a)\n        return 2;\n    else if (a)\n"
     "        return 3;\n    else if (a)\n        return 4;\n    return 5;\n}\n"),
    ("src/cli/main.c", 'int main(void)\n{\n    printf("x");\n    return getenv("X") != 0;\n}\n'),
    ("src/base/a.c", "static void f(int *x)\n{\n" + lines(77) + "}\n"),
]


@pytest.mark.parametrize("path, text", GOOD)
def test_good_code_passes(path, text):
    assert check.check_all({path: text}) == []


def test_waivers_only_shrink():
    finding = check.Finding("src/base/a.c", 1, "params", "f", "7 parameters")
    key = finding.key()
    assert check.judge([finding], {key: "why"}, {key: "why"}) == []
    assert check.judge([finding], {}, {}) == [str(finding)]
    assert "excuses nothing" in check.judge([], {key: "why"}, {key: "why"})[0]
    assert "may only shrink" in check.judge([finding], {key: "why"}, {})[0]


def test_function_reader():
    code = "struct a *f(const char *s, int (*g)(int, int),\n    int n)\n{\n    switch (n) {\n    case 1:\n        if (n)\n" \
           "            return 0;\n    }\n    return 0;\n}\n\n#define X\n"
    (f,) = check.functions(code)
    assert (f.name, f.line, f.n_line, f.n_param, f.nesting) == ("f", 1, 10, 3, 2)
