"""A small real program: which machine it believes to be on, and a few figures."""

import os
import platform
import statistics
import sys

primes = [n for n in range(2, 2000) if all(n % d for d in range(2, int(n**0.5) + 1))]
gaps = [b - a for a, b in zip(primes, primes[1:])]

print(f"Python {sys.version.split()[0]} on {platform.system()} {platform.release()}, pid {os.getpid()}, uid {os.getuid()}")
print(f"{len(primes)} primes below 2000; the mean gap is {statistics.mean(gaps):.3f}, the widest {max(gaps)}")
