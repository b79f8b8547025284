"""Modules as trees, in pb.grad and its relatives, and called with other tensors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as pb
from pullback import nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))


def network():
    pb.random.seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).astype(pb.float64)


def loss(model, x=X):
    return (model(pb.asarray(x)) ** 2).mean()


def gradients_by_backward(model, function=loss):
    found = pb.backward(function(model), wrt=[p for p in model.parameters() if p.requires_grad])
    return {name: np.array(found[p]) for name, p in model.named_parameters() if p.requires_grad}


def assert_same(gradient_module, expected):
    actual = dict(gradient_module.named_parameters())
    for name, value in expected.items():
        np.testing.assert_allclose(np.asarray(actual[name]), value, rtol=1e-12, atol=1e-14)


# -- trees -----------------------------------------------------------------------------------------


def test_leaves_are_the_parameters_that_require_a_gradient():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).freeze("0.*")
    leaves = pb.tree.leaves(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert len(leaves) == len(trained) == 4
    assert all(leaf.data.ctypes.data == p.data.ctypes.data for leaf, p in zip(leaves, trained))
    assert not any(leaf.requires_grad for leaf in leaves)


def test_a_subclass_is_a_tree_by_itself():
    class Mine(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(pb.zeros(2))

    class Narrower(Mine):
        pass

    for cls in (Mine, Narrower):
        assert len(pb.tree.leaves({"a": [cls()]})) == 1
        assert type(pb.tree.map(lambda x: x, cls())) is cls


def test_grad_of_a_module_is_a_module_of_gradients():
    model = network()
    gradient = pb.grad(loss)(model)
    assert isinstance(gradient, nn.Sequential)
    assert_same(gradient, gradients_by_backward(model))
    assert all(p.grad is None for p in model.parameters())


def test_a_step_by_tree_map():
    model = network()
    stepped = pb.tree.map(lambda p, g: p - 0.1 * g, model, pb.grad(loss)(model))
    for _ in range(3):  # what a map makes is again a tree with the same leaves
        stepped = pb.tree.map(lambda p, g: p - 0.1 * g, stepped, pb.grad(loss)(stepped))
    assert loss(stepped).item() < loss(model).item()
    assert not loss(stepped).requires_grad  # no graph grows from step to step
    assert all(p.requires_grad for p in stepped.unfreeze().parameters())
    assert pb.tree.structure(stepped) == pb.tree.structure(model)
    assert len(pb.tree.leaves(stepped.freeze("0.*"))) == 2


def test_value_and_grad_of_a_dict_of_modules():
    models = {"a": network(), "b": network()}
    value, gradient = pb.value_and_grad(lambda m: loss(m["a"]) * loss(m["b"]))(models)
    assert value.item() == pytest.approx(loss(models["a"]).item() ** 2)
    other = loss(models["b"]).item()
    assert_same(gradient["a"], {k: v * other for k, v in gradients_by_backward(models["a"]).items()})


def test_frozen_parameters_are_no_leaves_and_stay():
    model = network().freeze("0.*")
    gradient = pb.grad(loss)(model)
    assert gradient[0].weight is model[0].weight
    assert_same(gradient, gradients_by_backward(model))


def test_leaves_of_any_kind_can_be_put_in():
    model = network()
    shapes = pb.tree.map(lambda p: p.shape[0], model)
    assert pb.tree.leaves(shapes) == [4, 4, 2, 2]
    zero = pb.zeros(())
    same = pb.tree.map(lambda p: zero, model)  # one object in many places is not taken for tied
    assert len(pb.tree.leaves(same)) == 4
    assert pb.tree.structure(same) == pb.tree.structure(model)


def test_parts_of_a_module_of_gradients_are_trees():
    gradient = pb.grad(loss)(network())
    assert [leaf.shape for leaf in pb.tree.leaves(gradient[2])] == [(2, 4), (2,)]


class Tied(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(5, 3, dtype=pb.float64)
        self.heads = [nn.Linear(3, 5, bias=False)]
        self.heads[0].weight = self.embedding.weight

    def forward(self, tokens):
        return self.heads[0](pb.tanh(self.embedding(tokens)))


def test_tied_parameters_are_one_leaf():
    model = Tied()

    def tied_loss(model):
        return (model(np.array([1, 4, 1])) ** 2).sum()

    gradient = pb.grad(tied_loss)(model)
    assert len(pb.tree.leaves(gradient)) == 1
    assert gradient.heads[0].weight is gradient.embedding.weight
    assert_same(gradient, gradients_by_backward(model, tied_loss))
    again = pb.grad(tied_loss)(pb.tree.map(lambda p: p, model))
    assert_same(again, gradients_by_backward(model, tied_loss))


def test_modules_of_other_names_do_not_fit_together():
    with pytest.raises(pb.ShapeError):
        pb.tree.map(lambda a, b: a, nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
    assert pb.tree.structure(nn.Linear(2, 2)) == pb.tree.structure(nn.Linear(2, 2))


def test_forward_mode_through_a_module():
    model = network()
    tangent = pb.tree.map(lambda p: pb.asarray(RNG.normal(size=p.shape)), model)
    _, derivative = pb.jvp(loss, (model,), (tangent,))
    expected = gradients_by_backward(model)
    dot = sum((expected[name] * np.asarray(t)).sum() for name, t in tangent.named_parameters())
    assert float(derivative) == pytest.approx(dot, rel=1e-12)


def test_hessian_vector_product_of_a_module():
    model = network()
    tangent = pb.tree.map(lambda p: pb.asarray(RNG.normal(size=p.shape)), model)
    (product,) = pb.hvp(loss, (model,), (tangent,))
    step = 1e-5
    moved = [pb.tree.map(lambda p, t, s=s: p + s * t, model, tangent) for s in (step, -step)]
    ahead, behind = (dict(pb.grad(loss)(m).named_parameters()) for m in moved)
    for name, value in product.named_parameters():
        difference = (np.asarray(ahead[name]) - np.asarray(behind[name])) / (2 * step)
        np.testing.assert_allclose(np.asarray(value), difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("transform", ["backward", "grad", "jvp"])
def test_running_statistics_are_written_in_every_mode(transform):
    norm = nn.BatchNorm1d(3, momentum=1.0, dtype=pb.float64)
    buffers = list(norm.buffers())
    if transform == "backward":
        loss(norm).backward()
    elif transform == "grad":
        pb.grad(loss)(norm)
    else:
        pb.jvp(lambda x: loss(norm, x), (X,), (np.ones_like(X),))
    assert all(a is b for a, b in zip(buffers, norm.buffers()))
    np.testing.assert_allclose(np.asarray(norm.running_mean), X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(norm.running_var), X.var(0, ddof=1), rtol=1e-12)
    assert norm.num_batches_tracked.item() == 1
    assert not norm.running_mean.requires_grad and type(norm.running_mean) is pb.Tensor


# -- functional_call -------------------------------------------------------------------------------


def test_functional_call_computes_with_the_given_tensors():
    model, other = network(), network()
    with pb.no_grad():
        for p in other.parameters():
            p *= 2.0
    before = list(model.parameters())
    out = nn.functional_call(model, dict(other.named_parameters()), X)
    assert np.array_equal(out.detach(), other(X).detach())
    part = nn.functional_call(model, {"2.bias": np.ones(2)}, X)
    np.testing.assert_allclose(part.detach(), model(X).detach() - model[2].bias.detach() + 1.0)
    assert all(a is b for a, b in zip(before, model.parameters()))


def test_functional_call_is_differentiable_by_what_it_is_given():
    model = network()
    parameters = model.state_dict()

    def by_parameters(parameters):
        return (nn.functional_call(model, parameters, X) ** 2).mean()

    expected = gradients_by_backward(model)
    for name, gradient in pb.grad(by_parameters)(parameters).items():
        np.testing.assert_allclose(np.asarray(gradient), expected[name], rtol=1e-12)
    arrays = {name: np.array(p) for name, p in parameters.items()}
    assert pb.gradcheck(by_parameters, (arrays,), order=2)


def test_functional_call_to_the_second_order():
    layer = nn.Linear(3, 1, bias=False, dtype=pb.float64)

    def cubed(weight):
        return (nn.functional_call(layer, {"weight": weight}, X) ** 3).sum()

    weight = RNG.normal(size=(1, 3))
    expected = np.einsum("n,ni,nj->ij", 6 * (X @ weight[0]), X, X)
    np.testing.assert_allclose(pb.hessian(cubed)(weight)[0, :, 0], expected, rtol=1e-10)


def test_functional_call_replaces_a_tied_tensor_everywhere():
    model = Tied()
    tokens = np.array([1, 4, 1])
    zero = np.zeros((5, 3))
    assert (np.asarray(nn.functional_call(model, {"heads.0.weight": zero}, tokens)) == 0).all()
    state = model.state_dict()
    assert np.array_equal(nn.functional_call(model, state, tokens), model(tokens).detach())
    with pytest.raises(pb.ConfigurationError, match="one tensor"):
        nn.functional_call(model, {"embedding.weight": zero, "heads.0.weight": zero + 1}, tokens)


def test_functional_call_writes_the_buffers_it_is_given():
    norm = nn.BatchNorm1d(3, momentum=1.0, dtype=pb.float64)
    given = {"running_mean": pb.zeros(3, dtype=pb.float64), "running_var": pb.ones(3, dtype=pb.float64)}
    nn.functional_call(norm, given, X)
    np.testing.assert_allclose(np.asarray(given["running_mean"]), X.mean(0))
    assert (np.asarray(norm.running_mean) == 0).all()


def test_functional_call_refuses_what_does_not_fit():
    model = network()
    with pytest.raises(pb.ConfigurationError, match=r"no tensor '0\.wieght'. Close: '0\.weight'"):
        nn.functional_call(model, {"0.wieght": np.ones((4, 3))}, X)
    with pytest.raises(pb.ShapeError, match=r"'0\.bias' has shape \(3,\), the module's has \(4,\)"):
        nn.functional_call(model, {"0.bias": np.ones(3)}, X)


def test_threads_share_a_module():
    model = network()
    expected = gradients_by_backward(model)

    def work(seed):
        scaled = {name: p.detach() * (1.0 + seed) for name, p in model.named_parameters()}
        called = nn.functional_call(model, scaled, X)
        gradient = pb.grad(loss)(model)
        assert_same(gradient, expected)
        return np.asarray(called)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, [0, 1, 2, 3] * 25))
    for result, again in zip(results[:4], results[-4:]):
        assert np.array_equal(result, again)
    assert np.array_equal(results[0], model(X).detach())


def test_checkpointing_changes_neither_gradients_nor_statistics():
    layers = [nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU(), nn.Dropout(0.5), nn.Linear(4, 2)]
    model = nn.Sequential(*layers).astype(pb.float64)
    found = []
    for strategy in (pb.NoCheckpointing(), pb.BalancedCheckpointing()):
        model[1].reset_running_stats()
        pb.random.seed(0)
        with pb.checkpointing(strategy):
            gradients = gradients_by_backward(model)
        found.append([*gradients.values(), *(np.array(buffer) for buffer in model.buffers())])
    assert all(np.array_equal(a, b) for a, b in zip(*found))
    assert model[1].num_batches_tracked.item() == 1
