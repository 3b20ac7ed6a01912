"""`hadal score` in front of the scripted engine: the form of its output."""
import json
import math
import re


def test_logits_lines(run):
    r = run("score", "--ids", "256,72,105", "--logits", "--continue", "4")
    lines = [json.loads(line) for line in r.stdout.splitlines()]
    assert [x["pos"] for x in lines] == list(range(7)) and [x["id"] for x in lines[:3]] == [256, 72, 105]
    assert all(list(x) == ["pos", "id", "logits"] and len(x["logits"]) == 266 for x in lines)
    for before, x in zip(lines[2:], lines[3:]):
        assert x["id"] == before["logits"].index(max(before["logits"]))
    assert max(len(re.sub(rb"[^\d]", b"", number)) for number in re.findall(rb"0\.[1-9]\d+", r.stdout)) == 10  # nine digits behind 0.


def test_perplexity_of_a_text(run, tmp_path):
    (tmp_path / "t").write_text("The same text.")
    from_file, from_pipe = run("score", tmp_path / "t"), run("score", text="The same text.")
    numbers = [re.fullmatch(rb"14 tokens, perplexity ([\d.]+), ([\d.]+) nats a token, ([\d.]+) bits a byte, [\d.]+ tokens/s\n",
                            r.stdout).groups() for r in (from_file, from_pipe)]
    assert numbers[0] == numbers[1]
    perplexity, nats, bits = map(float, numbers[0])
    assert math.isclose(math.exp(nats), perplexity, rel_tol=1e-4) and math.isclose(nats / math.log(2), bits, rel_tol=1e-4)


def test_windows(run):
    """Longer than the context: every window starts anew, every token of the text is scored once."""
    r = run("score", "--context", "100", text="x" * 1000)
    assert r.stdout.startswith(b"1000 tokens, ")


def test_bad_input(run):
    for arguments, expected in [(["--ids", "1,x"], b"--ids: expected numbers separated by commas, found x"),
                                (["--ids", ""], b"--ids: no numbers"),
                                (["--ids", "1,99999"], b"token 1 has id 99999"),
                                (["/nowhere"], b"/nowhere: cannot open")]:
        r = run("score", *arguments)
        assert r.returncode == 1 and expected in r.stderr, (arguments, r)
    assert b"the text is empty" in run("score", text="").stderr
