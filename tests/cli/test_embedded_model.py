"""The whole program with the model that it carries: what `make run` does. Skipped where models/ has no such file."""
import os
import re
import subprocess
import time

import pytest


@pytest.fixture(scope="module")
def ask(hadal):
    def ask(*arguments, text=""):
        return subprocess.run([hadal, "run", *arguments], input=text.encode(), capture_output=True, timeout=120)
    if b"no embedded model" in ask("-p", "x").stderr:
        pytest.skip("the program carries no model")
    return ask


def test_answers_in_words(ask):
    r = ask("--seed", "1", "-p", "Tell me a story.")
    assert r.returncode == 0 and b"tokens/s" in r.stderr
    assert re.search(r"[A-Z][a-z]+ [a-z]+ [a-z]+.*\.", r.stdout.decode())


def test_text_does_not_depend_on_threads_drafts_chunks_or_backend(ask):
    ways = [[], ["-t", "1"], ["-t", "3"], ["--no-drafts"], ["--chunk", "3"], ["--backend", "ref"], ["--level", "portable"]]
    texts = {ask("-q", "--seed", "7", "-n", "40", "-p", "Tell me about the sea.", *way).stdout for way in ways}
    assert len(texts) == 1 and len(texts.pop()) > 20


def test_conversation(ask):
    r = ask("-i", "-q", "--seed", "3", text="Hello, who are you?\nThank you.\n/retry\n")
    assert r.returncode == 0 and len(r.stdout.decode().strip().split("\n")) >= 3


def test_first_token_comes_soon(hadal, ask):
    begin = time.monotonic()
    p = subprocess.Popen([hadal, "run", "-q", "-p", "Hello!"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    os.read(p.stdout.fileno(), 1)
    seconds = time.monotonic() - begin
    p.communicate(timeout=60)
    assert seconds < 10  # 2 s without sanitizers and on an idle machine
