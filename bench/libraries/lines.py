"""Prints how many milliseconds the library needs for a stream of many lines, and how many it had."""

import sys
import time

import atoll

lines = 0
with atoll.Atoll() as client:
    client.execute("1", language="python")
    begun = time.perf_counter()
    with client.executions.stream(sys.argv[1]) as stream:
        for event in stream:
            if event.type == "output":
                lines += event.data.count("\n")
    print((time.perf_counter() - begun) * 1000, lines)
