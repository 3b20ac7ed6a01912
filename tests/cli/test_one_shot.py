"""`hadal run` without a terminal: prompts, pipes, options, exit codes."""
import os
import re
import signal
import subprocess
import time


def test_answer_to_a_prompt(run):
    r = run("run", "-p", "hello")
    assert (r.returncode, r.stdout) == (0, b"You said: hello\n")
    assert re.search(rb"prompt \d+ tokens, [\d.]+ tokens/s \| answer 15 tokens, [\d.]+ tokens/s \| context \d+ of 4096 \| seed \d+",
                     r.stderr)


def test_piped_input(run):
    assert run("run", text="from a pipe\n").stdout == b"You said: from a pipe\n"
    assert run("run", text="").returncode == 1
    assert b"prompt is empty" in run("run", text="").stderr


def test_prompt_and_file(run, tmp_path):
    (tmp_path / "f").write_text("contents")
    assert run("run", "-p", "Sum up:", "-f", tmp_path / "f").stdout == b"You said: Sum up:\n\ncontents\n"
    assert run("run", "-p", "Sum up:", "-f", "-", text="piped").stdout == b"You said: Sum up:\n\npiped\n"
    r = run("run", "-f", tmp_path / "nothing")
    assert r.returncode == 1 and b"nothing: cannot open: No such file" in r.stderr


def test_quiet(run):
    r = run("run", "-q", "-p", "hello")
    assert (r.stdout, r.stderr) == (b"You said: hello\n", b"")


def test_no_style_in_pipes(run):
    r = run("run", "-p", "hello", env={"TERM": "xterm"})
    assert b"\033" not in r.stdout + r.stderr


def test_bytes_pass_through_whole(run, script):
    path = script("say Grüße, 你好 \U0001f40b\x1b[31m\n")
    r = run("run", "-m", path, "-p", "x")
    assert r.stdout.decode() == "Grüße, 你好 \U0001f40b\x1b[31m\n"


def test_reasoning_goes_to_the_notes(run, script):
    path = script("say let me see</think>42\n")
    r = run("run", "-m", path, "--think", "on", "-p", "x")
    assert r.stdout == b"42\n" and r.stderr.startswith(b"let me see\nprompt ")
    r = run("run", "-m", path, "--think", "on", "-q", "-p", "x")
    assert r.stdout == b"42\n" and r.stderr == b""


def test_bad_effort(run):
    r = run("run", "--think", "hardest", "-p", "x")
    assert r.returncode == 1 and b"thinking is off, on or an effort" in r.stderr


def test_stop_strings_and_token_limit(run, script):
    path = script("say one two three\n")
    r = run("run", "-m", path, "-p", "x", "--stop", " thr", "--stop", "zzz")
    assert r.stdout == b"one two\n" and b"ended at a stop string" in r.stderr
    r = run("run", "-m", path, "-p", "x", "-n", "5")
    assert r.stdout == b"one t\n" and b"ended at the token limit" in r.stderr
    assert run("run", "-m", path, "-p", "x", "-n", "0").stdout in (b"", b"\n")


def test_steps_of_several_tokens(run, script):
    path = script("step 7\nsay one two three\n")
    r = run("run", "-m", path, "-p", "x")
    assert r.stdout == b"one two three\n" and b"a step" in r.stderr
    assert run("run", "-m", path, "-p", "x", "-n", "5").stdout == b"one t\n"
    r = run("run", "-m", path, "-p", "x", "--no-drafts")
    assert r.stdout == b"one two three\n" and b"a step" not in r.stderr


def test_same_seed_same_text(run, script):
    path = script("babble 40\n")
    texts = [run("run", "-m", path, "-p", "x", "--seed", seed).stdout for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2] and len(texts[0]) == 41


def test_full_context(run, script):
    path = script("context 40\nbabble 100\n")
    r = run("run", "-m", path, "-p", "x")
    assert r.returncode == 0 and b"the context is full" in r.stderr
    r = run("run", "-m", path, "-p", "x" * 100)
    assert r.returncode == 1 and b"do not fit in a context of 40" in r.stderr


def test_raw(run, script):
    path = script("say more\n")
    assert run("run", "-m", path, "--raw", "-p", "some text").stdout == b"more\n"


def test_system_and_saved(run, tmp_path):
    (tmp_path / "saved.json").write_text('[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]')
    with_it = run("run", "--system", "Be brief.", "--load", tmp_path / "saved.json", "-p", "c")
    without = run("run", "-p", "c")
    n = [int(re.search(rb"prompt (\d+)", r.stderr).group(1)) for r in (with_it, without)]
    assert with_it.stdout == without.stdout == b"You said: c\n" and n[0] == n[1] + 1 + len("Be brief.") + 6
    (tmp_path / "bad.json").write_text("{")
    r = run("run", "--load", tmp_path / "bad.json", "-p", "c")
    assert r.returncode == 1 and b"bad.json" in r.stderr


def test_failing_engine(run, script):
    r = run("run", "-m", script("fail the disk is gone\n"), "-p", "x")
    assert (r.returncode, r.stdout) == (1, b"") and r.stderr.strip().endswith(b"hadal: the disk is gone")
    r = run("run", "-m", "/nowhere", "-p", "x")
    assert r.returncode == 1 and r.stderr == b"hadal: /nowhere: cannot open: No such file or directory\n"


def test_usage_errors(run):
    for arguments, expected in [
            (["run", "--temprature", "1"], b"unknown option --temprature; did you mean --temperature?"),
            (["run", "--xyz"], b"unknown option --xyz\n"),
            (["run", "-Z"], b"unknown option -Z"),
            (["run", "--temperature"], b"--temperature needs a value: X"),
            (["run", "--temperature", "hot"], b"--temperature: hot is not a number from 0 to 100"),
            (["run", "--temperature=-1"], b"--temperature: -1 is not a number from 0 to 100"),
            (["run", "--top-k", "1.5"], b"--top-k: 1.5 is not a number from 0"),
            (["run", "--top-p", "nan"], b"--top-p: nan is not a number from 0 to 1"),
            (["run", "--seed", "-3"], b"--seed: -3 is not a whole number"),
            (["run", "--quiet=1"], b"--quiet takes no value"),
            (["run", "extra"], b"run takes no extra; a prompt is given with -p"),
            (["run", "-i", "-p", "x"], b"--interactive goes with none of"),
            (["rum"], b"unknown command rum; did you mean run?"),
            (["frobnicate"], b"unknown command frobnicate; `hadal help` lists them"),
            (["score", "a", "b"], b"score takes one FILE"),
            (["inspect", "a", "b"], b"inspect takes one MODEL")]:
        r = run(*arguments)
        assert r.returncode == 2 and expected in r.stderr and r.stdout == b"", (arguments, r)


def test_spellings_of_options(run):
    for options in (["--prompt=a b"], ["--prompt", "a b"], ["-p", "a b"], ["-pa b"]):
        assert run("run", *options).stdout == b"You said: a b\n"
    assert run("run", "-p", "-x").stdout == b"You said: -x\n"


def test_help_and_version(run):
    assert re.fullmatch(rb"hadal \d+\.\d+\.\d+\n", run("--version").stdout)
    assert b"Commands" in run("help").stdout and run("help").returncode == 0
    assert run().returncode == 2
    for command in ("run", "score", "inspect"):
        text = run("help", command).stdout
        assert text.startswith(b"hadal " + command.encode()) and text == run(command, "--help").stdout
    assert run("help", "rum").returncode == 2


def test_inspect(run):
    assert run("inspect").stdout == b"model       scripted\n"
    assert run("inspect", "missing.gguf").returncode == 1


def test_interrupt_ends_the_answer(hadal_fake, script):
    path = script("delay 30\nbabble 1000\n")
    p = subprocess.Popen([hadal_fake, "run", "-m", path, "-p", "x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    assert re.match(rb"[a-z]", os.read(p.stdout.fileno(), 1))
    p.send_signal(signal.SIGINT)
    start = time.monotonic()
    out, err = p.communicate(timeout=20)
    assert p.returncode == 130 and b"| stopped" in err and time.monotonic() - start < 5
    assert re.fullmatch(rb"[a-z]*\n", out)


def test_interrupt_during_the_prompt(hadal_fake, script):
    p = subprocess.Popen([hadal_fake, "run", "-m", script("prefill 50\n"), "-p", "x" * 500], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20)
    assert p.returncode == 130


def test_closed_output(hadal_fake, script):
    """`hadal run | head -1` ends without a signal or a crash."""
    p = subprocess.Popen([hadal_fake, "run", "-q", "-m", script("babble 3000\n"), "-p", "x"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.close()
    assert p.wait(timeout=60) in (0, 1) and p.stderr.read() == b""


def test_drafts(run, script):
    path = script("step 7\nsay one two three\n")
    r = run("run", "-m", path, "-p", "x", "--draft", "off")
    assert r.stdout == b"one two three\n" and b"a step" not in r.stderr.replace(b"1.00 a step", b"")
    r = run("run", "-m", path, "-p", "x", "--draft", "auto")
    assert r.stdout == b"one two three\n" and re.search(rb"tokens in \d+ steps: [\d.]+ a step kept", r.stderr)
    for wrong in ("17", "-1", "many", ""):
        r = run("run", "-m", path, "-p", "x", "--draft=" + wrong)
        assert r.returncode == 2 and b"drafts are auto, off, or a number" in r.stderr
