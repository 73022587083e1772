"""Builds the native library with the project's Makefile and puts it into the package: pip install ./python"""

import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = "build/liblinnet_python.so"


class BuildWithLibrary(build_py):
    def run(self):
        subprocess.run(["make", "-C", str(ROOT), LIBRARY], check=True)
        super().run()
        shutil.copy(ROOT / LIBRARY, pathlib.Path(self.build_lib) / "linnet")


class NativeDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(packages=["linnet"], cmdclass={"build_py": BuildWithLibrary}, distclass=NativeDistribution)
