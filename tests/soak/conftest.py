"""Fixtures of the long runs: a program over hadal.h, linked to the libraries of the build, and a model."""
import pathlib
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARIES = ["libpcre2-8", "libutf8proc", "json-c", "libxxhash", "libcrypto"]


@pytest.fixture(scope="session")
def soak(build, tmp_path_factory):
    """The path of programs/soak.c, built."""
    archives = sorted(map(str, build.glob("libhadal_*.a")))
    if not archives:
        pytest.skip(f"{build} holds no libraries")
    flags = shlex.split(subprocess.run(["pkg-config", "--libs", *LIBRARIES], capture_output=True, text=True, check=True).stdout)
    out = tmp_path_factory.mktemp("soak") / "soak"
    subprocess.run(["cc", "-std=c11", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}/include",
                    ROOT / "tests/soak/programs/soak.c", "-o", out, "-Wl,--start-group", *archives, "-Wl,--end-group", *flags,
                    "-lm", "-lpthread"], check=True)
    return out


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The shipped model with draft stages, else the toy."""
    shipped = ROOT / "models/hadal-tiny-v41.gguf"
    if shipped.exists():
        return shipped
    folder = tmp_path_factory.mktemp("toy")
    subprocess.run([sys.executable, "-m", "train.reference.oracle", "--toy", "v41", "--dump-toy", folder], cwd=ROOT, check=True)
    return folder
