"""Many examples at once: the backend that `vmap` runs a function on.

Its arrays are stacks (`stack.py`): a tensor of the level below that holds one array per example along its first axis,
seen as the array of one example. So `Autodiff` works on top of it as on any backend, and below it. `apply.py` runs an
operation on stacks; how it works on a stack of its inputs is its `batch` mark's form (`forms.py` and the modules beside
it), else its portable form, else it runs example by example.
"""
