"""Portable kernels: recurrent layers, and their steps.

`x` has the inputs of all steps, already projected: (length, ..., gates * width); `weight` projects the state. Gates are
in PyTorch's order. What a gradient needs of a step is kept for all steps in one array.

A backend may compute some steps together (`lstm_steps`, ...): what it makes for so many of them serves any length.
"""

from __future__ import annotations

from typing import Any, Callable

from ..spans import spans_of as _spans_of


def _parts(xp: Any, x: Any, count: int) -> list[Any]:
    """`x` in equal parts along its last axis."""
    width = x.shape[-1] // count
    return [xp.getitem(x, (..., slice(i * width, (i + 1) * width))) for i in range(count)]


def _in_spans(
    xp: Any,
    steps: Callable[..., Any],
    timed: tuple[int, ...],
    length: int,
    reverse: bool,
    arguments: Callable[..., Any],
    carried: Callable[..., Any],
    state: tuple[Any, ...],
) -> list[Any]:
    """What `steps` gives for all steps, some of which it takes at a time.

    `steps(*arguments(span, *state))` gives a tuple, of which `carried(*made)` makes the state for the next span. Those
    of its results that are `timed` have an axis of steps first, and are joined; of the others the last are given.
    """
    if hasattr(steps, "into"):  # native code, which writes where its results belong
        from ..numpy.recurrent import in_spans

        return in_spans(steps, timed, length, reverse, arguments, carried, state)
    parts = []
    for span in _spans_of(length, reverse):
        made = steps(*arguments(span, *state))
        state = carried(*made)
        parts.append(made)
    *_, last = parts
    if len(parts) == 1:
        return list(last)
    in_time = parts[::-1] if reverse else parts
    return [xp.concat([made[i] for made in in_time], 0) if i in timed else last[i] for i in range(len(last))]


def _order(length: int, reverse: bool) -> Any:
    return range(length - 1, -1, -1) if reverse else range(length)


def _in_time(xp: Any, steps: list[Any], reverse: bool) -> Any:
    return xp.stack(steps[::-1] if reverse else steps, 0)


def _last(xp: Any, out: Any, reverse: bool) -> Any:
    """The state after the step that is taken last."""
    return xp.getitem(out, (0 if reverse else out.shape[0] - 1,))


def _states_before(xp: Any, h: Any, out: Any, reverse: bool) -> Any:
    """The state that each step began with."""
    first = xp.expand_dims(h, (0,))
    if reverse:
        return xp.concat([xp.getitem(out, (slice(1, None),)), first], 0)
    return xp.concat([first, xp.getitem(out, (slice(0, out.shape[0] - 1),))], 0)


def _parameter_gradients(xp: Any, projected: Any, before: Any, needs: Any) -> tuple[Any, Any]:
    """The gradients of weight and bias, given those of the projected states of all steps: one product."""
    rows = xp.rows(projected)
    weight = xp.matmul(xp.matrix_transpose(rows), xp.rows(before)) if needs[0] else None
    return weight, xp.sum(rows, (-2,), False) if needs[1] else None


# -- LSTM ----------------------------------------------------------------------------------------


def _lstm_step(xp: Any, x: Any, h: Any, c: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
    """The next state (h, c), and the gates."""
    take, keep, candidate, show = _parts(xp, x + xp.linear(h, weight, bias), 4)
    take, keep, candidate, show = xp.sigmoid(take), xp.sigmoid(keep), xp.tanh(candidate), xp.sigmoid(show)
    cell = keep * c + take * candidate
    return show * xp.tanh(cell), cell, xp.concat([take, keep, candidate, show], -1)


def _lstm_step_gradient(
    xp: Any, g: Any, g_h: Any, g_c: Any, c: Any, cell: Any, gates: Any, weight: Any
) -> tuple[Any, Any, Any]:
    """The gradients of a step's projections and of the state before, given those of its output and of what follows."""
    take, keep, candidate, show = _parts(xp, gates, 4)
    g_h = g + g_h
    shown = xp.tanh(cell)
    g_cell = g_c + g_h * show * (1 - shown * shown)
    projected = xp.concat(
        [
            g_cell * candidate * (take * (1 - take)),
            g_cell * c * (keep * (1 - keep)),
            g_cell * take * (1 - candidate * candidate),
            g_h * shown * (show * (1 - show)),
        ],
        -1,
    )
    return projected, xp.matmul(projected, weight), g_cell * keep


def lstm(xp: Any, x: Any, h: Any, c: Any, weight: Any, bias: Any, reverse: bool) -> tuple[Any, Any, Any, Any]:
    def arguments(span: slice, h: Any, c: Any) -> tuple[Any, ...]:
        return xp.getitem(x, (span,)), h, c, weight, bias, reverse

    def carried(out: Any, c: Any, cells: Any, gates: Any) -> tuple[Any, Any]:
        return _last(xp, out, reverse), c

    out, c, cells, gates = _in_spans(xp, xp.lstm_steps, (0, 2, 3), x.shape[0], reverse, arguments, carried, (h, c))
    return out, c, cells, gates


def lstm_steps(xp: Any, x: Any, h: Any, c: Any, weight: Any, bias: Any, reverse: bool) -> tuple[Any, Any, Any, Any]:
    outputs, cells, gates = [], [], []
    for t in _order(x.shape[0], reverse):
        h, c, gate = _lstm_step(xp, xp.getitem(x, (t,)), h, c, weight, bias)
        outputs.append(h)
        cells.append(c)
        gates.append(gate)
    return _in_time(xp, outputs, reverse), c, _in_time(xp, cells, reverse), _in_time(xp, gates, reverse)


def lstm_gradient(
    xp: Any, g: Any, h: Any, c: Any, weight: Any, out: Any, cells: Any, gates: Any, reverse: bool, needs: Any
) -> tuple[Any, ...]:
    g_out, g_c = g
    g_out = xp.zeros_like(out) if g_out is None else g_out
    g_c, g_h = xp.zeros_like(c) if g_c is None else g_c, xp.zeros_like(h)
    states = _states_before(xp, c, cells, reverse)

    def arguments(span: slice, g_h: Any, g_c: Any) -> tuple[Any, ...]:
        at = [xp.getitem(part, (span,)) for part in (g_out, states, cells, gates)]
        return at[0], g_h, g_c, *at[1:], weight, reverse

    projected, g_h, g_c = _in_spans(
        xp, xp.lstm_steps_gradient, (0,), out.shape[0], not reverse, arguments, lambda *made: made[1:], (g_h, g_c)
    )
    before = _states_before(xp, h, out, reverse) if needs[3] else None
    return projected, g_h, g_c, *_parameter_gradients(xp, projected, before, needs[3:])


def lstm_steps_gradient(
    xp: Any, g: Any, g_h: Any, g_c: Any, states: Any, cells: Any, gates: Any, weight: Any, reverse: bool
) -> tuple[Any, Any, Any]:
    steps = []
    for t in _order(g.shape[0], not reverse):
        g_out, c, cell, gate = [xp.getitem(part, (t,)) for part in (g, states, cells, gates)]
        projected, g_h, g_c = _lstm_step_gradient(xp, g_out, g_h, g_c, c, cell, gate, weight)
        steps.append(projected)
    return _in_time(xp, steps, not reverse), g_h, g_c


# -- GRU -----------------------------------------------------------------------------------------


def _gru_step(xp: Any, x: Any, h: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    """The next state, and its gates: reset, update, candidate, and what the candidate had of the state before."""
    (x_reset, x_update, x_new), (reset, update, new) = _parts(xp, x, 3), _parts(xp, xp.linear(h, weight, bias), 3)
    reset, update = xp.sigmoid(x_reset + reset), xp.sigmoid(x_update + update)
    candidate = xp.tanh(x_new + reset * new)
    return candidate + update * (h - candidate), xp.concat([reset, update, candidate, new], -1)


def _gru_step_gradient(xp: Any, g: Any, g_h: Any, h: Any, gates: Any, weight: Any) -> tuple[Any, Any, Any]:
    """The gradients of a step's projected input, of its projected state, and of the state before."""
    reset, update, candidate, new = _parts(xp, gates, 4)
    g_h = g + g_h
    g_new = g_h * (1 - update) * (1 - candidate * candidate)
    g_gates = [g_new * new * (reset * (1 - reset)), g_h * (h - candidate) * (update * (1 - update))]
    projected = xp.concat([*g_gates, g_new * reset], -1)
    return xp.concat([*g_gates, g_new], -1), projected, g_h * update + xp.matmul(projected, weight)


def gru(xp: Any, x: Any, h: Any, weight: Any, bias: Any, reverse: bool) -> tuple[Any, Any]:
    def arguments(span: slice, h: Any) -> tuple[Any, ...]:
        return xp.getitem(x, (span,)), h, weight, bias, reverse

    def carried(out: Any, gates: Any) -> tuple[Any]:
        return (_last(xp, out, reverse),)

    out, gates = _in_spans(xp, xp.gru_steps, (0, 1), x.shape[0], reverse, arguments, carried, (h,))
    return out, gates


def gru_steps(xp: Any, x: Any, h: Any, weight: Any, bias: Any, reverse: bool) -> tuple[Any, Any]:
    outputs, gates = [], []
    for t in _order(x.shape[0], reverse):
        h, gate = _gru_step(xp, xp.getitem(x, (t,)), h, weight, bias)
        outputs.append(h)
        gates.append(gate)
    return _in_time(xp, outputs, reverse), _in_time(xp, gates, reverse)


def gru_gradient(
    xp: Any, g: Any, h: Any, weight: Any, out: Any, gates: Any, reverse: bool, needs: Any
) -> tuple[Any, ...]:
    g_h = xp.zeros_like(h)
    states = _states_before(xp, h, out, reverse)

    def arguments(span: slice, g_h: Any) -> tuple[Any, ...]:
        at = [xp.getitem(part, (span,)) for part in (g, states, gates)]
        return at[0], g_h, *at[1:], weight, reverse

    of_input, projected, g_h = _in_spans(
        xp, xp.gru_steps_gradient, (0, 1), out.shape[0], not reverse, arguments, lambda *made: made[2:], (g_h,)
    )
    return of_input, g_h, *_parameter_gradients(xp, projected, states, needs[2:])


def gru_steps_gradient(
    xp: Any, g: Any, g_h: Any, states: Any, gates: Any, weight: Any, reverse: bool
) -> tuple[Any, Any, Any]:
    inputs, steps = [], []
    for t in _order(g.shape[0], not reverse):
        g_out, h, gate = [xp.getitem(part, (t,)) for part in (g, states, gates)]
        of_input, of_state, g_h = _gru_step_gradient(xp, g_out, g_h, h, gate, weight)
        inputs.append(of_input)
        steps.append(of_state)
    return _in_time(xp, inputs, not reverse), _in_time(xp, steps, not reverse), g_h


# -- RNN -----------------------------------------------------------------------------------------


def _activation(xp: Any, activation: str) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = xp.tanh if activation == "tanh" else xp.relu
    return function


def _rnn_step_gradient(xp: Any, g: Any, g_h: Any, out: Any, weight: Any, activation: str) -> tuple[Any, Any]:
    """The gradients of a step's projections and of the state before."""
    g = g + g_h
    projected = g * (1 - out * out) if activation == "tanh" else g * xp.astype(out > 0, g.dtype)
    return projected, xp.matmul(projected, weight)


def rnn(xp: Any, x: Any, h: Any, weight: Any, bias: Any, activation: str, reverse: bool) -> Any:
    def arguments(span: slice, h: Any) -> tuple[Any, ...]:
        return xp.getitem(x, (span,)), h, weight, bias, activation, reverse

    def carried(out: Any) -> tuple[Any]:
        return (_last(xp, out, reverse),)

    return _in_spans(xp, xp.rnn_steps, (0,), x.shape[0], reverse, arguments, carried, (h,))[0]


def rnn_steps(xp: Any, x: Any, h: Any, weight: Any, bias: Any, activation: str, reverse: bool) -> tuple[Any]:
    outputs = []
    for t in _order(x.shape[0], reverse):
        h = _activation(xp, activation)(xp.getitem(x, (t,)) + xp.linear(h, weight, bias))
        outputs.append(h)
    return (_in_time(xp, outputs, reverse),)


def rnn_gradient(
    xp: Any, g: Any, h: Any, weight: Any, out: Any, activation: str, reverse: bool, needs: Any
) -> tuple[Any, ...]:
    g_h = xp.zeros_like(h)

    def arguments(span: slice, g_h: Any) -> tuple[Any, ...]:
        return xp.getitem(g, (span,)), g_h, xp.getitem(out, (span,)), weight, activation, reverse

    projected, g_h = _in_spans(
        xp, xp.rnn_steps_gradient, (0,), out.shape[0], not reverse, arguments, lambda *made: made[1:], (g_h,)
    )
    before = _states_before(xp, h, out, reverse) if needs[2] else None
    return projected, g_h, *_parameter_gradients(xp, projected, before, needs[2:])


def rnn_steps_gradient(
    xp: Any, g: Any, g_h: Any, out: Any, weight: Any, activation: str, reverse: bool
) -> tuple[Any, Any]:
    steps = []
    for t in _order(g.shape[0], not reverse):
        at = [xp.getitem(part, (t,)) for part in (g, out)]
        projected, g_h = _rnn_step_gradient(xp, at[0], g_h, at[1], weight, activation)
        steps.append(projected)
    return _in_time(xp, steps, not reverse), g_h
