"""Fixtures of all Python tests, which import the models' builders by name."""

import sys

import pytest

from harness import ROOT, SHARED, suite

sys.path.insert(0, str(ROOT / "tests/python/builders"))


@pytest.fixture(scope="session")
def shared():
    """The folder of real models and suites; tests that need it are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED.name}/ (set LINNET_SHARED)")
    return SHARED


@pytest.fixture(scope="session")
def suite_folder():
    """The ONNX backend suite: the shared one, unpacked once; else what the onnx package holds and makes."""
    return suite()
