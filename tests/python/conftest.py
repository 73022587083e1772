"""Fixtures of all Python tests."""

import pathlib
import tarfile

import onnx.backend.test
import pytest

from harness import ROOT, SHARED


@pytest.fixture(scope="session")
def shared():
    """The folder of real models and suites; tests that need it are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED.name}/ (set LINNET_SHARED)")
    return SHARED


@pytest.fixture(scope="session")
def suite_folder():
    """The ONNX backend suite: the shared one, unpacked once; else what the onnx package holds."""
    archive = SHARED / "onnx-suite" / "onnx-backend-suite.tar.xz"
    if not archive.is_file():
        return pathlib.Path(onnx.backend.test.__file__).parent / "data"
    folder = ROOT / "build" / "onnx-suite"
    stamp = folder / ".unpacked"
    if not stamp.is_file():
        with tarfile.open(archive) as t:
            t.extractall(folder, filter="data")
        stamp.touch()
    return folder
