#!/usr/bin/env python3
"""with_spark.py MODEL OUT FILES...: the parts under Spark, by mapPartitions or, with --pandas, by mapInPandas. All executors have
to see OUT and the files by the same names, and these modules."""

import json
import os
import pathlib
import sys

import pandas
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import parts

TRIES = 4  # Spark's own number; its local mode would have one


def run(todo, asked):
    master = os.environ.get("MASTER", f"local[{asked.workers},{TRIES}]")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    modules = os.pathsep.join([str(pathlib.Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")])
    spark = (SparkSession.builder.master(master).config("spark.ui.enabled", "false")
             .config("spark.executorEnv.PYTHONPATH", modules).getOrCreate())
    out, values = asked.out, asked.values

    def partition(rows):
        return [parts.do_part(out, values, *row) for row in rows]

    def frames(given):
        for frame in given:
            yield pandas.DataFrame({"number": partition(zip(frame.number, map(json.loads, frame.names)))})

    try:
        if asked.pandas:
            rows = spark.sparkContext.parallelize([(number, json.dumps(names)) for number, names in todo], len(todo))
            spark.createDataFrame(rows, "number long, names string").mapInPandas(frames, "number long").collect()
        else:
            spark.sparkContext.parallelize(todo, len(todo)).mapPartitions(partition).collect()
    except Py4JJavaError as why:
        return [f"Spark gave up: {why.java_exception.getMessage()}"]
    finally:
        spark.stop()
    return []


if __name__ == "__main__":
    parts.drive(__doc__, run)
