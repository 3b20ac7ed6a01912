"""A program on a terminal of its own, driven as a person would: type, wait for text, press Ctrl-C."""
import os
import pty
import re
import select
import signal
import time


class Terminal:
    def __init__(self, arguments, env=None):
        self.text = ""
        self.seen = 0  # how much of text `expect` has gone past
        pid, self.fd = pty.fork()
        if pid == 0:
            os.execve(arguments[0], arguments, {**os.environ, "TERM": "xterm", **(env or {})})
        self.pid = pid

    def read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def expect(self, pattern, seconds=20):
        """Waits for a pattern behind everything expected so far; returns the match."""
        end = time.monotonic() + seconds
        while True:
            found = re.compile(pattern).search(self.text, self.seen)
            if found:
                self.seen = found.end()
                return found
            if time.monotonic() > end or (not self.read(0.2) and self.has_ended()):
                raise AssertionError(f"no {pattern!r} in {self.text[self.seen:]!r}; before it: {self.text[:self.seen]!r}")

    def send(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        self.send(text + "\r")

    def has_ended(self):
        if self.pid:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid, self.code = 0, os.waitstatus_to_exitcode(status)
        return not self.pid

    def end(self, seconds=20):
        """The exit code."""
        limit = time.monotonic() + seconds
        while not self.has_ended():
            self.read(0.1)
            assert time.monotonic() < limit, f"did not end: {self.text!r}"
        while self.read(0.05):
            pass
        os.close(self.fd)
        return self.code

    def kill(self):
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            self.end()
