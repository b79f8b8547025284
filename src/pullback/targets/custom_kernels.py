"""Descriptions of the kernels that compute a whole operation at once: scans, gathering, attention, convolutions, ...

Like those in `kernels.py` they are complete and hashable, with strides in elements. Arrays are those that are read,
then those that are written, in the order in which a description names them; those that are None are left out. What is
written overlaps nothing that is read, but for what `written_over` names.
"""

from __future__ import annotations

from dataclasses import dataclass

Strides = tuple[int, ...]


@dataclass(frozen=True)
class Scan:
    """out[t] = a[t] * out[t-1] + x[t] along `axis` (not negative), from its end if `reverse`.

    `a` and `h0` are broadcast to `shape` by strides of 0; the stride of `h0` along the axis is not used. Without `h0`
    out[0] is x[0]: this is the kernel `recurrence` as well. Arrays: x, a, h0, out.
    """

    dtype: str
    shape: tuple[int, ...]
    axis: int
    reverse: bool
    x: Strides
    a: Strides
    h0: Strides | None
    out: Strides


@dataclass(frozen=True)
class ScanGradient:
    """Gradients of x, a and h0 of a `Scan` from that of its result, `g`; those whose strides are None are not made.

    All have the shape of x, and are to be summed over the axes that were broadcast, with two exceptions: that of `h0`
    has no axis of time (its stride there is not used), and that of `a` has none either if `sums_a`: then it is summed
    over time here. `out` is the scan's result, needed for the gradient of `a` alone.
    Arrays: g, a, h0, out, grad_x, grad_a, grad_h0.
    """

    dtype: str
    shape: tuple[int, ...]
    axis: int
    reverse: bool
    g: Strides
    a: Strides
    h0: Strides | None
    out: Strides | None
    grad_x: Strides | None
    grad_a: Strides | None
    grad_h0: Strides | None
    sums_a: bool = False


@dataclass(frozen=True)
class Running:
    """Running sums or products (`op` is "sum" or "prod") of x along `axis`, from its end if `reverse`.

    With `exclusive` an element's own value is left out, and the first result is 0 or 1. Arrays: x, out.
    """

    op: str
    dtype: str
    shape: tuple[int, ...]
    axis: int
    reverse: bool
    exclusive: bool
    x: Strides
    out: Strides


@dataclass(frozen=True)
class Extreme:
    """The positions of the largest or smallest elements (`op` is "argmax" or "argmin") of rows of `length` elements.

    The first of several; that of the first NaN if there is one. `x` has strides for `shape` (the rows), then for the
    row's own axis; `out` has those of `shape` alone and is int64. Arrays: x, out.
    """

    op: str
    dtype: str
    shape: tuple[int, ...]
    length: int
    x: Strides
    out: Strides


@dataclass(frozen=True)
class Gather:
    """out[o, p, n] = x[o, i(p), j(p), ..., n]: rows named by integers, one array of them for each axis in `sizes`.

    Axes are `outer` (o), then those that are indexed (`sizes`), then `inner` (n); `places` (p) is the shape to which
    the arrays of indices are broadcast. Strides of x are for outer + sizes + inner, those of out for outer + places +
    inner, those of each index for places. This is `take` (one axis in `sizes`) and x[i, j, ...]. Negative indices count
    from the end; one that is out of bounds stands for 0. Arrays: x, the indices, out.
    """

    dtype: str
    outer: tuple[int, ...]
    sizes: tuple[int, ...]
    places: tuple[int, ...]
    inner: tuple[int, ...]
    x: Strides
    indices: tuple[tuple[str, Strides], ...]  # (dtype, strides)
    out: Strides


@dataclass(frozen=True)
class Scatter:
    """Zeros, with value[o, p, n] added at out[o, i(p), j(p), ..., n], in the order of the places: see `Gather`.

    Indices as for `Gather`. With `onto` the rows are added to those of an array in place of zeros: it has the strides
    of `out`, and may be the very same memory. Arrays: that one, value, the indices, out.
    """

    dtype: str
    outer: tuple[int, ...]
    sizes: tuple[int, ...]
    places: tuple[int, ...]
    inner: tuple[int, ...]
    value: Strides
    indices: tuple[tuple[str, Strides], ...]
    out: Strides
    onto: bool = False


@dataclass(frozen=True)
class Overwrite:
    """An array with value[o, p, n] in place of [o, i(p), j(p), ..., n], the last of several: see `Gather`.

    Indices as for `Gather`; an axis in `sizes` has at least one element. The array is contiguous, and so is `out`,
    which may be the very same memory: then nothing else of it is touched. Arrays: that one, value, the indices, out.
    """

    dtype: str
    outer: tuple[int, ...]
    sizes: tuple[int, ...]
    places: tuple[int, ...]
    inner: tuple[int, ...]
    value: Strides
    indices: tuple[tuple[str, Strides], ...]


@dataclass(frozen=True)
class GatherAlong:
    """out[o, p] = x[o, index[o, p]] with o over `rows` and p below `count`: `take_along_axis`.

    Strides are for rows, then for the axis along which is gathered (`size` long in x). Indices as for `Gather`.
    Arrays: x, index, out.
    """

    dtype: str
    rows: tuple[int, ...]
    size: int
    count: int
    x: Strides
    index_dtype: str
    index: Strides
    out: Strides


@dataclass(frozen=True)
class ScatterAlong:
    """Zeros, with value[o, p] added at out[o, index[o, p]]: `take_along_axis_transposed`; see `GatherAlong`.

    Arrays: value, index, out.
    """

    dtype: str
    rows: tuple[int, ...]
    size: int
    count: int
    value: Strides
    index_dtype: str
    index: Strides
    out: Strides


@dataclass(frozen=True)
class Attention:
    """out = softmax(scale * q k^T + mask) v for every head, and the logarithm of each row's denominator.

    Axes are `batch` and heads (`heads` of k and v, `group` times as many of q), then rows and columns: q is
    (..., length, width), k (..., keys, width), v (..., keys, value_width), out (..., length, value_width) and
    lse (..., length). `mask` is (dtype, strides) over batch, all heads, length and keys: bool (what may be seen) or of
    the same dtype as q (what is added). Where `is_causal`, row i sees columns up to i.
    Arrays: q, k, v, mask, out, lse.
    """

    dtype: str
    batch: tuple[int, ...]
    heads: int
    group: int
    length: int
    keys: int
    width: int
    value_width: int
    q: Strides
    k: Strides
    v: Strides
    mask: tuple[str, Strides] | None
    is_causal: bool
    scale: float
    out: Strides
    lse: Strides


@dataclass(frozen=True)
class AttentionGradient:
    """Gradients of q, k and v of `forward` from that of its result, `g`; those whose strides are None are not made.

    Arrays: g, q, k, v, mask, out, lse, dq, dk, dv, where out and lse are the results of `forward`.
    """

    forward: Attention
    g: Strides
    dq: Strides | None
    dk: Strides | None
    dv: Strides | None


@dataclass(frozen=True)
class CrossEntropy:
    """Losses of rows of logits by the numbers of the right classes, and the gradient of the logits times `scale`.

    `x` has strides for rows and classes; `target`, `bias` (added to the logits first) and `weight` (of the classes) are
    (dtype, stride). `scale` is the stride of a factor for each row, 0 for one factor of all; without it there is no
    gradient. Rows whose class is `ignored` have the loss 0 and the gradient 0. Losses, with stride 1, and scale are of
    float32 for half precision. The gradient has the strides of x, and may be the very same memory.
    Arrays: x, target, bias, weight, scale, losses, gradient.
    """

    dtype: str
    rows: int
    length: int
    x: Strides
    target: tuple[str, int]
    bias: tuple[str, int] | None
    weight: tuple[str, int] | None
    scale: int | None
    ignored: int
    smoothing: float

    @property
    def wide(self) -> str:
        """The dtype in which it is computed."""
        return "float32" if self.dtype in ("float16", "bfloat16") else self.dtype


@dataclass(frozen=True)
class Philox:
    """`count` numbers made from the stream of a key, contiguous: one 32-bit word for each, or two.

    `made` is "uint32" (the words themselves), "bool" (whether a word is at least `threshold`: what dropout keeps),
    "float32" (the upper 24 bits of a word as a number in [0, 1)) or "float64" (two words as one, see
    `unit_of_two_words`). `key` and `offset` (of the first word) are
    64-bit numbers in arrays of one element. Arrays: key, offset, out.
    """

    made: str
    count: int
    threshold: int = 0
    domain: int = 0


@dataclass(frozen=True)
class Window:
    """How a window goes over an image (height, width): what a convolution and its gradient share.

    out[y, x] sees the elements y * stride + t * dilation - start for every t below `kernel`, along both axes, of an
    image of `size`; what is not there is 0.
    """

    size: tuple[int, int]
    kernel: tuple[int, int]
    out: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    start: tuple[int, int]

    @property
    def reach(self) -> tuple[int, int]:
        """How many elements all windows together see along each axis, zeros among them."""
        axes = zip(self.out, self.stride, self.kernel, self.dilation)
        high, wide = ((n - 1) * jump + (taps - 1) * step + 1 for n, jump, taps, step in axes)
        return high, wide


@dataclass(frozen=True)
class DirectConvolution:
    """A convolution straight from the images: out[s, f] = sum over the channels c of f's group of x[s, c] * w[f, c].

    `channels` and `features` are those of a group. Strides of x and out are for samples, all channels or features, and
    the two axes of the image; w is contiguous. Arrays: x, w, out.
    """

    dtype: str
    samples: int
    groups: int
    channels: int
    features: int
    window: Window
    x: Strides
    out: Strides


@dataclass(frozen=True)
class DirectConvolutionGradient:
    """The gradient of w of a `DirectConvolution` from that of its result, `g`, summed over the samples in their order.

    Strides of g are as those of out. Arrays: g, x, grad_w, which is contiguous.
    """

    dtype: str
    samples: int
    groups: int
    channels: int
    features: int
    window: Window
    g: Strides
    x: Strides


def written_over(kernel: object) -> tuple[int, int] | None:
    """What a kernel may write over: the numbers of an array among those it reads and among those it writes."""
    if isinstance(kernel, CrossEntropy) and kernel.scale is not None:
        return 0, 1
    is_onto = isinstance(kernel, Overwrite) or (isinstance(kernel, Scatter) and kernel.onto)
    return (0, 0) if is_onto else None
