#!/usr/bin/env python3
"""Runs every fuzzer of a build folder for a while, starting from tests/fuzz/corpus/<name>; stops at the first crash."""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / ".build/fuzz")
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    build = options.build.resolve()
    names = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("fuzz_*.c"))
    failed = []
    for name in names:
        found = build / "corpus" / name
        found.mkdir(parents=True, exist_ok=True)
        seeds = ROOT / "tests/fuzz/corpus" / name.removeprefix("fuzz_")
        folders = [found] + ([seeds] if seeds.is_dir() else [])
        print(f"{name}: {options.seconds} s", flush=True)
        code = subprocess.call([build / name, f"-max_total_time={options.seconds}",
                                "-timeout=10", "-rss_limit_mb=4096", "-print_final_stats=1", *folders],
                               cwd=build)
        if code:
            failed.append(name)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
