"""Fixtures of the command-line suites. The program stands in front of the scripted engine."""
import os
import subprocess

import pytest
from terminal import Terminal


@pytest.fixture
def script(tmp_path):
    """Writes a script for the scripted engine (tests/support/fake_engine.h)."""
    def write(text):
        path = tmp_path / "script"
        path.write_text(text)
        return str(path)
    return write


@pytest.fixture
def run(hadal_fake, tmp_path):
    """Runs the program without a terminal."""
    def run(*arguments, text="", timeout=60, env=None):
        return subprocess.run([hadal_fake, *map(str, arguments)], input=text.encode(), capture_output=True, timeout=timeout,
                              env={**os.environ, "HOME": str(tmp_path), **(env or {})})
    return run


@pytest.fixture
def chat(hadal_fake, tmp_path):
    """Opens a chat on a terminal."""
    opened = []

    def open_chat(*arguments, env=None):
        t = Terminal([hadal_fake, "run", *map(str, arguments)], env={"HOME": str(tmp_path), **(env or {})})
        opened.append(t)
        return t
    yield open_chat
    for t in opened:
        t.kill()
