"""examples/web as its tests run it: the server, two workers, on a port of its own."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import requests

from harness import ROOT

PATIENCE = 90  # seconds, on a machine that does much else


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def children(pid):
    """Processes that pid has started."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


@contextlib.contextmanager
def running(*options):
    """(base URL, process id) of a server that answers."""
    url = f"http://127.0.0.1:{free_port()}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    words = [sys.executable, ROOT / "examples" / "web" / "serve.py", "--port", url.rpartition(":")[2], *map(str, options)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE
            while True:
                with contextlib.suppress(requests.ConnectionError):
                    if requests.get(url + "/v2/health/ready", timeout=10).ok:
                        break
                log.seek(0)
                assert process.poll() is None, log.read()
                assert time.monotonic() < end, f"no server: {log.read()}"
                time.sleep(0.1)
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(30)
        log.seek(0)
        assert "Traceback" not in (text := log.read()), text
