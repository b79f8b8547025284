"""Pullback beside its peers, in one run: `python -m benchmarks NAME`.

Absolute times move from machine to machine and from minute to minute. So the systems take turns within a run,
each keeps its best round, and only ratios taken in one run are worth quoting.
"""
