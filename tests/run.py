#!/usr/bin/env python3
"""Runs the C suites (CTest) and the Python suites (pytest) of a build folder; last line: N passed, N failed."""
import argparse
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent


def count_program(case):
    """Passed and failed cases of one test program: cmocka's counts, its own last line, or one for the program."""
    text = case.findtext("system-out") or ""
    passed = sum(map(int, re.findall(r"\[  PASSED  \] (\d+) test\(s\)", text)))
    failed = sum(map(int, re.findall(r"\[  FAILED  \] (\d+) test\(s\), listed below", text)))
    for own in re.findall(r"^(\d+) passed, (\d+) failed$", text, re.M):
        passed, failed = passed + int(own[0]), failed + int(own[1])
    if case.get("status") != "run":  # ended badly: at least one failure, even where cmocka saw none
        failed = max(failed, 1)
    elif not passed:
        passed = 1
    return passed, failed


def run_ctest(build, jobs):
    report = build / "ctest.xml"
    report.unlink(missing_ok=True)
    whole = ["--test-output-size-passed", "10000000", "--test-output-size-failed", "10000000"]
    code = subprocess.call(["ctest", "--test-dir", build, "--output-on-failure", *whole, "--output-junit", report, "-j", str(jobs)])
    if not report.exists():
        return 0, 1
    cases = xml.parse(report).getroot().findall(".//testcase")
    counts = [count_program(case) for case in cases]
    passed, failed = (sum(c[i] for c in counts) for i in (0, 1))
    return passed, max(failed, 1 if code and cases else 0)


def start_pytest(build):
    """Runs beside CTest, because most of it waits for one process at a time; its output is shown afterwards."""
    (build / "pytest.xml").unlink(missing_ok=True)
    folders = [f for f in ("tests", "train/tests") if (ROOT / f).is_dir()]
    with open(build / "pytest.log", "w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-c", "tests/pytest.ini", "--rootdir", ".", "-q", "-rs", "--durations=8",
             "--ignore=tests/soak", "--build", build, f"--junitxml={build / 'pytest.xml'}", *folders],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def finish_pytest(build, process):
    code = process.wait()
    print((build / "pytest.log").read_text(), flush=True)
    report = build / "pytest.xml"
    if not report.exists():
        return 0, 1
    suite = xml.parse(report).getroot().find(".//testsuite")
    n = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    failed = n["failures"] + n["errors"]
    return n["tests"] - failed - n["skipped"], max(failed, 1 if code not in (0, 5) else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / ".build/test")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    build = options.build.resolve()
    begin = time.monotonic()
    beside = start_pytest(build)
    results = [run_ctest(build, max(1, options.jobs - 1)), finish_pytest(build, beside)]
    passed, failed = (sum(r[i] for r in results) for i in (0, 1))
    print(f"\n{time.monotonic() - begin:.0f} s", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
