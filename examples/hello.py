"""A small real program: which machine it believes to be on, and a few figures."""

import os
import sys

primes = [n for n in range(2, 1000) if all(n % d for d in range(2, int(n**0.5) + 1))]
gaps = [b - a for a, b in zip(primes, primes[1:])]

machine = os.uname()
print(f"Python {sys.version.split()[0]} on {machine.sysname} {machine.release}, pid {os.getpid()}, uid {os.getuid()}")
print(f"{len(primes)} primes below 1000; the mean gap is {sum(gaps) / len(gaps):.3f}, the widest {max(gaps)}")
