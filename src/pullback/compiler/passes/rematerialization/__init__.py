"""Computing again what a walk over a graph needs, instead of keeping it: checkpointing strategies in programs.

Instructions know which walk recorded them, and under which strategy (`program.Mark`). What a walk takes from before it
was kept for it, in memory all the while (`flow.py`). A strategy says which of that is dropped (`choices.py`,
`budget.py`): the walk then computes it again, from what is there (`emission.py`).

Programs have no state, so that whatever is computed again is the same: random numbers, which are functions of a key
and a place, and what was written in place too. What a function of the user's own made is never dropped.

This comes after all other passes, which would find that the same is computed twice.
"""

from .rematerialize import rematerialized, saved_bytes, walk_apart

__all__ = ["rematerialized", "saved_bytes", "walk_apart"]
