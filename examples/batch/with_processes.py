#!/usr/bin/env python3
"""with_processes.py MODEL OUT FILES...: the parts on this machine's CPUs, by nothing but Python. A worker that is killed is
replaced, and its part done again; a part that ends three workers is given up, and named."""

import collections
import multiprocessing
import multiprocessing.connection

import parts

TRIES = 3


def serve(pipe, work):
    """The life of a worker: it ends when the driver does, however that ends."""
    try:
        while True:
            work(*pipe.recv())
            pipe.send(True)
    except (EOFError, BrokenPipeError):
        pass


class Worker:
    def __init__(self, context, work):
        self.pipe, theirs = context.Pipe()
        self.part = None
        self.process = context.Process(target=serve, args=(theirs, work), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, part, asked):
        self.part = part
        try:
            self.pipe.send((asked.out, asked.values, *part))
        except BrokenPipeError:
            pass  # it is dead, as its pipe will say when it is read

    def done(self):
        """False if it is dead."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return False

    def end(self):
        self.pipe.close()
        self.process.join()


def run(todo, asked, work=parts.do_part):
    # Spawned, not forked: a forked worker has its siblings' pipes, too, and would not see the driver end.
    context = multiprocessing.get_context("spawn")
    waiting, tries, lost = collections.deque(todo), collections.Counter(), []
    workers = [Worker(context, work) for _ in range(min(asked.workers, len(todo)))]
    while True:
        for worker in workers:
            if worker.part is None and waiting:
                worker.give(waiting.popleft(), asked)
        busy = {worker.pipe: worker for worker in workers if worker.part is not None}
        if not busy:
            break
        for pipe in multiprocessing.connection.wait(list(busy)):
            worker = busy[pipe]
            part, worker.part = worker.part, None
            if worker.done():
                continue
            number, names = part
            tries[number] += 1
            print(f"a worker ended in part {number}, whose turn it is again", flush=True)
            worker.end()
            workers[workers.index(worker)] = Worker(context, work)
            if tries[number] < TRIES:
                waiting.append(part)
            else:
                lost.append(f"part {number} ended {TRIES} workers: {', '.join(names)}")
    for worker in workers:
        worker.end()
    return lost


if __name__ == "__main__":
    parts.drive(__doc__, run)
