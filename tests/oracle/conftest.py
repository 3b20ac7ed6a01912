"""Fixtures of the oracle suites: the engine under test, and a folder per session for models."""
import os
import pathlib
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).parent)]

torch.set_num_threads(1) # small tensors: more threads only wait for each other


@pytest.fixture(scope="session")
def hadal(build):
    """HADAL_BIN, or the build folder's program, or the optimised one."""
    given = os.environ.get("HADAL_BIN")
    for path in [pathlib.Path(given)] if given else [build / "hadal", ROOT / ".build/test/hadal", ROOT / ".build/release/hadal"]:
        if path.exists():
            return str(path)
    pytest.skip("hadal is not built; set HADAL_BIN")
