#!/usr/bin/env python3
"""serve.py --model [NAME=]FILE ...: a page that looks at pictures, for phones, too, and beside it the Open Inference Protocol."""

import argparse
import base64
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.requests import ClientDisconnect
import uvicorn

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "pictures")]

import linnet  # noqa: E402
import oip  # noqa: E402
import pictures  # noqa: E402

SHOWN = 1600  # the longer side of what is sent back, in pixels
THROWN_AWAY = 16  # times the limit: what is read of a body that is too large, so that its sender hears why
SETTINGS = "LINNET_WEB"  # in the environment of the workers, which are processes of their own
RULES = {"Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                    "img-src data: blob:; connect-src 'self'", "X-Content-Type-Options": "nosniff"}


def body_reader(most):
    async def read_body(request):
        """The request's body; 413 if it has more than `most` bytes."""
        parts, size = [], 0
        try:
            async for chunk in request.stream():
                size += len(chunk)
                if size <= most:
                    parts.append(chunk)
                elif size > THROWN_AWAY * most:
                    break
        except ClientDisconnect as why:
            raise HTTPException(400, "the request was cut short") from why
        if size > most:
            raise HTTPException(413, f"more than {most / 1e6:g} MB, which is what is taken")
        return b"".join(parts)

    return read_body


def look(model, body):
    """What the page shows: what is in the picture, and the picture with it."""
    try:
        picture = pictures.decode(body)
    except pictures.BadPicture as why:
        raise HTTPException(400, str(why)) from why
    picture.thumbnail((SHOWN, SHOWN))
    seen, file = model.look(picture), io.BytesIO()
    pictures.draw(picture, seen).save(file, "JPEG", quality=90)
    return {**pictures.plain(seen), "picture": "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()}


def load(settings):
    """(sessions by name, picture models by name). Those that keep a state would mix up what their callers sent."""
    sessions, looking = {}, {}
    for name, path in settings["models"].items():
        try:
            model = pictures.PictureModel(path, settings["labels"], values=settings["values"], threads=settings["threads"])
            sessions[name], looking[name] = model.session, model
        except ValueError:
            options = linnet.SessionOptions()
            options.intra_op_num_threads = settings["threads"]
            sessions[name] = linnet.InferenceSession(path, options)
        if any(port.is_state for port in sessions[name].get_outputs()):
            raise SystemExit(f"serve: {path} keeps a state from run to run, which callers cannot share")
    return sessions, looking


def make_app():
    """The application of one worker."""
    settings = json.loads(os.environ[SETTINGS])
    sessions, looking = load(settings)
    app, read_body = FastAPI(title="Linnet"), body_reader(settings["most"])
    app.include_router(oip.router(sessions, read_body, settings["most"]))
    page = (HERE / "page.html").read_text()

    @app.exception_handler(AnyHTTPException)
    def say_why(_, why):
        return JSONResponse({"error": why.detail}, why.status_code, why.headers)

    @app.get("/")
    def root():
        return HTMLResponse(page, headers=RULES)

    @app.get("/models")
    def models():
        return {name: model.kind for name, model in looking.items()}

    @app.post("/look/{name}")
    async def look_at(name: str, request: Request):
        if name not in looking:
            raise HTTPException(404, f"there is no model {name!r} that takes pictures")
        sent = request.headers.get("Content-Type", "").split(";")[0].strip().lower()
        if not sent.startswith("image/") and sent != "application/octet-stream":
            raise HTTPException(415, f"Content-Type is {sent or 'missing'}: send the picture itself, as image/jpeg or image/png")
        return await run_in_threadpool(look, looking[name], await read_body(request))

    return app


def named(text):
    name, _, path = text.rpartition("=")
    return name or pathlib.Path(path).stem, path


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", required=True, type=named, metavar="[NAME=]FILE", help="an .lnt or .onnx file")
    parser.add_argument("--labels", type=pathlib.Path, help="a file with the name of a class on each line")
    parser.add_argument("--values", choices=pictures.RANGES, help="of a pixel; see pictures.py --help")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for phones of the same network (%(default)s)")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1, help="processes; the models' files are mapped once for all of them")
    parser.add_argument("--threads", type=int, help="of a worker (the CPUs there are, over the workers)")
    parser.add_argument("--most", type=float, default=16, metavar="MB", help="of a request (%(default)s)")
    return parser.parse_args()


def converted(path, folder):
    """The .lnt to map: the file itself, or what an .onnx is converted to, once for all workers."""
    if path.endswith(".onnx"):
        target = str(pathlib.Path(folder) / f"{len(os.listdir(folder))}.lnt")
        linnet.convert(path, target)
        return target
    return path


def main():
    asked = arguments()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="linnet-web-"))
        try:
            settings = {
                "models": {name: converted(path, folder) for name, path in asked.model},
                "labels": asked.labels.read_text().splitlines() if asked.labels else [],
                "values": asked.values,
                "threads": asked.threads or max(1, len(os.sched_getaffinity(0)) // asked.workers),
                "most": int(asked.most * 1e6),
            }
            load(settings)  # what is wrong with a file is said here, once, and not by each worker
        except (OSError, linnet.LinnetError) as why:
            sys.exit(f"serve: {why}")
        os.environ[SETTINGS] = json.dumps(settings)
        uvicorn.run("serve:make_app", factory=True, app_dir=str(HERE), host=asked.host, port=asked.port, workers=asked.workers,
                    log_level="warning")


if __name__ == "__main__":
    main()
