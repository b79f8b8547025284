"""The rule table. Each module declares a family of operations: everything about each of them, once.

    op("silu", "x", elementwise=True, expands="floats", x=lambda g, x: ...)

First come name, inputs (arrays) and static arguments, which follow the inputs and may have defaults ("axis=None").
"*xs" is an operation on a list of arrays: its rule gets and gives lists. With several `outputs` ("q r") `g` is a tuple
with None for those that nothing depends on; "*outs" is any number of them. A kernel with `residuals` returns
`(out, *residuals)`. Then rules, under the names of the inputs (see `recipe.py`), and marks, all of which may be absent:

about gradients
    elementwise     it broadcasts; its tangent is the rule applied to the inputs' tangents
    linear          inputs it is linear in, each by itself ("x y"), or "*" for all of them jointly
    composite       higher orders differentiate its portable form instead of its rule
    masking         its rule makes exact zeros in cotangents, which elementwise operations keep
    cheap           cheaper to compute again than to keep; elementwise operations are unless this says no
    autocast        in which precision it computes under `pb.autocast`: see `operations.AUTOCAST`
    converts        how many of its inputs that converts, of its static arguments; else all
about arrays
    dtypes          how the dtypes of its arrays go together: see `operations.DTYPES`
    real            there is none of complex numbers
    standard        the array API standard has it under this name: "main", "linalg" or "fft"
    numpy, scipy    ufuncs that are this operation; one of NumPy's with the same name is found by itself
about programs
    scalar          loops compute it number by number, in native code
    expands         it is traced as its portable form, "always" or for "floats"; else whole, if NumPy has a kernel
    commutes        the same result, to the last bit, with the operands exchanged
    reduces, moves  static arguments are axis and keepdims; elements of x come out in other places, nothing else
    shape           the shape of its result, as a function of its inputs' shapes; else an example is computed
    instead         what to write in compiled code: the shape of its result depends on values
about errors
    walks           it goes along its static `axis` step by step, from the end if `reverse`: they name the first bad one
about many examples at once (`vmap`)
    batch           the name of the form in which it works on stacks: see `batching/forms.py`. Elementwise operations
                    need none, nor what has a form under its own name; else its portable form is taken, or a loop
"""

from . import (
    activations,
    attention,
    convolution,
    decompositions,
    elementwise,
    fft,
    indexing,
    linalg,
    linear,
    losses,
    low_rank,
    normalization,
    packed,
    pooling,
    quantized,
    recurrent,
    reductions,
    scan,
    shape,
    sorting,
    special,
)

MODULES = (
    elementwise.rules,
    reductions.rules,
    shape.rules,
    indexing.rules,
    linear.rules,
    sorting.rules,
    linalg.rules,
    decompositions.rules,
    fft.rules,
    activations.rules,
    normalization.rules,
    losses.rules,
    low_rank.rules,
    convolution.rules,
    pooling.rules,
    attention.rules,
    scan.rules,
    recurrent.rules,
    special.rules,
    packed.rules,
    quantized.rules,
)
