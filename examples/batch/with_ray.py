#!/usr/bin/env python3
"""with_ray.py MODEL OUT FILES...: the parts on a Ray cluster, or on this machine where RAY_ADDRESS names none. All nodes have to
see OUT and the files by the same names, and these modules."""

import os

import ray

import parts

TRIES = 3


def run(todo, asked):
    ray.init(num_cpus=None if "RAY_ADDRESS" in os.environ else asked.workers, include_dashboard=False, log_to_driver=False)
    do_part = ray.remote(max_retries=TRIES - 1)(parts.do_part)
    running = {do_part.remote(asked.out, asked.values, *part): part for part in todo}
    lost = []
    while running:
        (done,), _ = ray.wait(list(running), num_returns=1)
        number, names = running.pop(done)
        try:
            ray.get(done)
        except ray.exceptions.RayError as why:
            lost.append(f"part {number}: {type(why).__name__}: {', '.join(names)}")
    ray.shutdown()
    return lost


if __name__ == "__main__":
    parts.drive(__doc__, run)
