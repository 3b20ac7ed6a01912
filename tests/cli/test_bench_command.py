"""`hadal bench` in front of the scripted engine: what it measures, in which form, and what it refuses."""
import csv
import json

import pytest

SMALL = ["--depths", "64,200", "--decode", "8", "--suffixes", "1,32", "--repeats", "2"]


def test_table(run):
    r = run("bench", *SMALL)
    lines = r.stdout.decode().splitlines()
    assert r.returncode == 0 and not r.stderr and lines[0].startswith("scripted (fake), 0.0 MB of weights, cpu")
    assert [(line[:24].strip(), *map(int, line[24:46].split())) for line in lines[2:]] == [
        ("prefill up to", 64, 64), ("decode behind", 64, 8), ("prefill up to", 200, 128), ("decode behind", 200, 8),
        ("first token, live prefix", 208, 1), ("first token, live prefix", 210, 32),
        ("first token, read anew", 200, 1), ("first token, read anew", 200, 32)]


def test_json_and_csv(run, tmp_path):
    """Every sample, and medians between the least and the most."""
    r = run("bench", *SMALL, "--json", tmp_path / "j", "--csv", tmp_path / "c", "--commit", 'a"b')
    found = json.loads((tmp_path / "j").read_text())
    assert r.returncode == 0 and found["commit"] == 'a"b' and "--depths 64,200" in found["command"]
    assert found["machine"]["n_processor"] >= 1 and found["engine"]["n_context"] == 200 + 2 * (8 + 17) + 2 + 33
    assert all(len(x["samples"]) == 2 and x["least"] <= x["median"] <= x["most"] for x in found["rows"])
    rows = list(csv.DictReader((tmp_path / "c").open()))
    assert [(x["kind"], int(x["depth"])) for x in rows] == [(x["kind"], x["depth"]) for x in found["rows"]]


def test_a_delay_is_measured(run, script, tmp_path):
    r = run("bench", "-m", script("delay 10\nprefill 5\n"), "--depths", "64", "--decode", "8", "--suffixes", "8", "--repeats", "1",
            "--json", tmp_path / "j")
    value = {x["kind"]: x["median"] for x in json.loads((tmp_path / "j").read_text())["rows"]}
    assert r.returncode == 0 and 0 < value["prefill"] < 201 and 0 < value["decode"] < 101
    assert 0.05 <= value["first_token_live"] < value["first_token_cold"] >= 0.37  # 8 x 5 + 10 ms; 72 x 5 + 10 ms


def test_defaults_fit_the_context(run, script):
    r = run("bench", "-m", script("context 1000\n"), "--repeats", "1", "--decode", "4")
    assert r.returncode == 0 and b"512" in r.stdout and b"1024" not in r.stdout


def test_text_of_a_file(run, tmp_path):
    (tmp_path / "t").write_text("ab")
    (tmp_path / "empty").write_text("")
    assert run("bench", *SMALL, "--text", tmp_path / "t").returncode == 0
    r = run("bench", *SMALL, "--text", tmp_path / "empty")
    assert r.returncode == 1 and b"empty: the text is empty" in r.stderr


@pytest.mark.parametrize("arguments, code, expected", [
    (["--depths", "5,5"], 2, "--depths: expected growing numbers separated by commas, found 5"),
    (["--depths", ""], 2, "--depths: no numbers"),
    (["--suffixes", "x"], 2, "--suffixes: expected growing numbers separated by commas, found x"),
    (["--depths", "64,70", "--decode", "8"], 1, "--depths: decoding takes up to 50 tokens, more than there are from 64 to 70"),
    (["--depths", "64", "-c", "70"], 1, "need a context of"),
    (["--repeats", "0"], 2, "--repeats: 0 is not a number from 1 to 99"),
    (["--json", "/nowhere/x", *SMALL], 1, "/nowhere/x"),
    (["a", "b"], 2, "bench takes one MODEL"),
])
def test_bad_input(run, arguments, code, expected):
    r = run("bench", *arguments)
    assert r.returncode == code and expected in r.stderr.decode(), r


def prompts(folder, name, *texts):
    path = folder / name
    path.write_text("".join("<｜begin▁of▁sentence｜>" + t for t in texts))
    return path


def test_kinds_of_content(run, tmp_path):
    """Every prompt is answered both ways as often as asked, and the same text comes of it."""
    files = [prompts(tmp_path, "code.v1.txt", "ab", "cd"), prompts(tmp_path, "prose", "ef")]
    r = run("bench", "--content", ",".join(map(str, files)), "--decode", "8", "--repeats", "3", "--json", tmp_path / "j")
    found = json.loads((tmp_path / "j").read_text())
    assert r.returncode == 0 and not r.stderr and b"TEXTS DIFFER" not in r.stdout
    assert [(k["kind"], k["n_prompt"], len(k["plain_seconds"]), len(k["auto_seconds"])) for k in found["content"]] == [
        ("code.v1", 2, 3, 3), ("prose", 1, 3, 3)]
    assert all(k["is_same_text"] and 0 < k["n_token"] <= 8 * k["n_prompt"] for k in found["content"])
    assert found["engine"]["n_context"] == 4096 and found["temperature"] == 0


def test_stretches_of_256_tokens(run, script, tmp_path):
    file = prompts(tmp_path, "a", "x" * 40)
    r = run("bench", "-m", script("delay 1\ncontext 2000\n"), "-c", "2000", "--content", file, "--decode", "600", "--repeats", "1",
            "--json", tmp_path / "j")
    kind, = json.loads((tmp_path / "j").read_text())["content"]
    assert r.returncode == 0 and len(kind["stretches_times_as_fast"]) == kind["n_token"] // 256


@pytest.mark.parametrize("text, arguments, code, expected", [
    ("no special token", [], 1, "a prompt must begin with the begin-of-sentence token"),
    ("<｜begin▁of▁sentence｜>ab", ["-c", "64"], 1, "do not fit in a context of 64"),
    ("<｜begin▁of▁sentence｜>ab", ["--repeats", "21"], 2, "--repeats: with --content at most 20"),
])
def test_bad_content(run, tmp_path, text, arguments, code, expected):
    (tmp_path / "t").write_text(text)
    r = run("bench", "--content", tmp_path / "t", *arguments)
    assert r.returncode == code and expected in r.stderr.decode(), r
