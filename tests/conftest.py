"""What every Python suite shares: the folder with the built programs."""
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--build", default=".build/test", help="folder with the built programs")


@pytest.fixture(scope="session")
def build(request):
    return (ROOT / request.config.getoption("--build")).resolve()


def program(build, name):
    path = build / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return str(path)


@pytest.fixture(scope="session")
def hadal(build):
    """The real program."""
    return program(build, "hadal")


@pytest.fixture(scope="session")
def hadal_fake(build):
    """The program in front of the scripted engine tests/support/fake_engine.c."""
    return program(build, "hadal-fake")
