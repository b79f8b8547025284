"""Memory of large arrays, which NumPy asks the system's allocator for.

That of glibc gives each large array's memory back to the system when it is freed, and whoever fills the next one waits
while the system makes its pages anew, which takes longer than many kernels (256 KiB: 120 microseconds on a virtual
machine). It does so until it has seen a large array come and go: from then on it keeps memory of arrays up to that
size. Others' allocators keep what they keep.
"""

from __future__ import annotations

import numpy as np

#: The largest array that glibc learns from has 32 MiB, with what it needs for itself.
LEARNT_BYTES = 31 << 20


def keep_large_arrays_memory() -> None:
    """Have the allocator see a large array come and go; no page of it is touched."""
    np.empty(LEARNT_BYTES, np.uint8)
