"""Builds the native library and the program with the project's Makefile and puts both into the package: pip install ./python.
With LINNET_BUILD set they are taken from that folder, stripped and for the platform LINNET_PLATFORM: make wheel."""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("LINNET_BUILD", ROOT / "build"))
NATIVE = ["liblinnet_python.so", "linnet"]


class BuildWithLibrary(build_py):
    def run(self):
        if "LINNET_BUILD" not in os.environ:
            subprocess.run(["make", "-C", str(ROOT), *[f"build/{name}" for name in NATIVE]], check=True)
        super().run()
        package = pathlib.Path(self.build_lib) / "linnet"
        for path in (*[BUILD / name for name in NATIVE], ROOT / "package/copyright"):
            shutil.copy(path, package)


class AnyPython(bdist_wheel):
    """The library is loaded by ctypes: nothing depends on the interpreter's version."""

    def get_tag(self):
        return "py3", "none", os.environ.get("LINNET_PLATFORM", super().get_tag()[2])


class NativeDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(packages=["linnet", "linnet.capi"], package_data={"linnet": ["py.typed"]},
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython}, distclass=NativeDistribution)
