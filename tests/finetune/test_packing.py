"""Packed rows have every sample once, whole and alone; losses and gradients are those of samples by themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pullback as pb
from pullback.finetune import PackedBatches, Sample, describe, fingerprint

VOCABULARY = 50
CONFIG = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
}  # fmt: skip


def samples_of(lengths, seed=0) -> list[Sample]:
    """Samples of random tokens, the first of each telling which it is; about half of the tokens have a loss."""
    generator = np.random.default_rng(seed)
    found = []
    for number, length in enumerate(lengths):
        tokens = generator.integers(0, VOCABULARY, length).astype(np.int32)
        tokens[0] = number % VOCABULARY
        labels = np.where(generator.random(length) < 0.5, tokens, np.int32(-100)).astype(np.int32)
        labels[0], labels[-1] = -100, tokens[-1]
        found.append(Sample(tokens, labels, f"data.jsonl:{number + 1}"))
    return found


def segments_of(batch):
    """The tokens and labels of each segment of a batch, and checks of what else it says."""
    for tokens, labels, positions, segments, count in zip(*batch):
        assert (np.diff(np.where(segments < 0, 1 << 20, segments)) >= 0).all()
        assert (labels[segments < 0] == -100).all()
        assert count == np.sum((labels[1:] != -100) & (segments[1:] == segments[:-1])) == np.sum(labels != -100)
        for segment in range(segments.max() + 1):
            inside = segments == segment
            assert positions[inside].tolist() == list(range(inside.sum()))
            yield tokens[inside].tolist(), labels[inside].tolist()


def contents(samples):
    return sorted((sample.tokens.tolist(), sample.labels.tolist()) for sample in samples)


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(2, 12), min_size=1, max_size=30),
    room=st.integers(12, 20),
    batch_size=st.integers(1, 4),
    options=st.fixed_dictionaries({"pack": st.booleans(), "shuffle": st.booleans(), "seed": st.integers(0, 9)}),
)
def test_every_epoch_has_every_sample_once(lengths, room, batch_size, options):
    samples = samples_of(lengths)
    batches = PackedBatches(samples, batch_size, room, padding=7, **options)
    for _ in range(2):
        epoch = list(batches)
        assert len(epoch) == len(batches)
        for batch in epoch:
            assert all(array.dtype == np.int32 for array in batch)
            assert [array.shape for array in batch] == [(batch_size, room)] * 4 + [(batch_size,)]
            assert (batch.tokens[batch.segments < 0] == 7).all()
            assert batch.counts.sum() > 0
        assert sorted(segment for batch in epoch for segment in segments_of(batch)) == contents(samples)
    filled = sum(lengths) / (batches.rows * room)
    assert batches.fill_rate == filled
    told = describe(samples, room, options["pack"])
    assert (told["rows"], told["fill_rate"]) == (batches.rows, filled)
    if not options["pack"]:
        assert batches.rows == len(samples)


@settings(max_examples=50, deadline=None)
@given(lengths=st.lists(st.integers(2, 8), min_size=1, max_size=20), stop=st.integers(0, 12), seed=st.integers(0, 3))
def test_batches_go_on_from_any_point(lengths, stop, seed):
    samples = samples_of(lengths)

    def stream(batches, number):
        found = []
        while len(found) < number:
            for batch in batches:
                found.append([array.tolist() for array in batch])
                if len(found) == number:
                    break
        return found

    whole = stream(PackedBatches(samples, 2, 10, seed=seed), stop + 5)
    first = PackedBatches(samples, 2, 10, seed=seed)
    stream(first, stop)
    state = json.loads(json.dumps(first.state_dict()))
    again = PackedBatches(samples, 2, 10, seed=seed)
    again.load_state_dict(state)
    assert stream(again, 5) == whole[stop:]
    epoch = [[array.tolist() for array in batch] for batch in again.of_epoch(0)]
    assert len(epoch) == len(again) and epoch[: len(whole)] == whole[: len(again)]


def test_epochs_differ_in_order_and_in_company():
    samples = samples_of([4] * 30 + [6] * 30)
    batches = PackedBatches(samples, 1, 10, seed=3)
    first, second = ([tuple(row.tokens[0].tolist()) for row in batches] for _ in range(2))
    assert first != second
    assert len(set(first) & set(second)) < 10
    assert [tuple(row.tokens[0].tolist()) for row in PackedBatches(samples, 1, 10, seed=3)] == first
    assert [tuple(row.tokens[0].tolist()) for row in PackedBatches(samples, 1, 10, seed=4)] != first
    still = PackedBatches(samples, 1, 10, shuffle=False)
    assert [row.tokens.tolist() for row in still] == [row.tokens.tolist() for row in still]


def test_rows_are_full():
    lengths = np.clip(np.random.default_rng(0).lognormal(5, 0.8, 5000), 2, 1024).astype(int)
    assert describe(samples_of(lengths), 1024)["fill_rate"] > 0.995


@pytest.mark.parametrize("pack", [True, False])
def test_losses_and_gradients_are_those_of_samples_by_themselves(pack):
    pb.random.seed(0)
    model = pb.models.qwen3(pb.models.DecoderConfig("qwen3", **CONFIG))
    samples = samples_of([5, 9, 2, 7, 3, 12, 4], seed=1)
    alone = [model.loss(sample.tokens[None], sample.labels[None], reduction="sum") for sample in samples]
    expected = sum(loss.item() for loss in alone)
    total = alone[0]
    for loss in alone[1:]:
        total = total + loss
    reference = pb.backward(total)
    loss_sum, counted, gradients = 0.0, 0, {}
    for tokens, labels, positions, segments, counts in PackedBatches(samples, 2, 16, pack=pack):
        loss = model.loss(tokens, labels, positions, segments, reduction="sum")
        loss_sum += loss.item()
        counted += counts.sum()
        found = pb.backward(loss)
        for name, parameter in model.named_parameters():
            gradients[name] = gradients.get(name, 0) + found[parameter].numpy()
    assert counted == sum(sample.loss_tokens for sample in samples)
    np.testing.assert_allclose(loss_sum, expected, rtol=1e-5)
    for name, parameter in model.named_parameters():
        scale = np.abs(reference[parameter].numpy()).max()
        np.testing.assert_allclose(gradients[name], reference[parameter].numpy(), rtol=1e-5, atol=1e-5 * scale)


def test_counts_are_the_terms_of_the_loss():
    pb.random.seed(0)
    model = pb.models.qwen3(pb.models.DecoderConfig("qwen3", **CONFIG))
    for tokens, labels, positions, segments, counts in PackedBatches(samples_of([5, 9, 2, 7]), 2, 16):
        arguments = tokens, labels, positions, segments
        ratio = model.loss(*arguments, reduction="sum").item() / model.loss(*arguments).item()
        assert ratio == pytest.approx(counts.sum(), rel=1e-5)


class Losses(pb.nn.Module):
    """A model whose output is the sum of its losses."""

    def __init__(self, model) -> None:
        self.model = model

    def forward(self, tokens, labels, positions, segments):
        return self.model.loss(tokens, labels, positions, segments, reduction="sum")


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_trainer_takes_them_and_goes_on_from_a_checkpoint(tmp_path, accumulate):
    samples = samples_of([5, 9, 2, 7, 3, 12, 4, 8, 8])

    def trained(folder, *runs):
        for epochs in runs:  # each goes on from the one before
            pb.random.seed(0)
            model = Losses(pb.models.qwen3(pb.models.DecoderConfig("qwen3", **CONFIG)))
            trainer = pb.train.Trainer(
                model,
                lambda total, counts: (total, counts.sum()),
                pb.optim.SGD(model.parameters(), lr=0.1),
                accumulate=accumulate,
                folder=folder,
                compile=False,
            )
            trainer.fit(PackedBatches(samples, 1, 16, seed=5), epochs=epochs, resume=epochs > runs[0])
        return model.state_dict()

    whole, resumed = trained(tmp_path / "whole", 2), trained(tmp_path / "resumed", 1, 2)
    for name, value in whole.items():
        np.testing.assert_array_equal(value.detach().numpy(), resumed[name].detach().numpy())


def test_other_data_is_not_resumed():
    samples = samples_of([5, 9, 2])
    state = PackedBatches(samples, 2, 16).state_dict()
    for wrong, message in [
        (PackedBatches(samples[::-1], 2, 16), "the samples were others"),
        (PackedBatches(samples, 1, 16), "batch_size was 2 and is 1"),
        (PackedBatches(samples, 2, 17), "length was 16 and is 17"),
        (PackedBatches(samples, 2, 16, pack=False), "pack was True and is False"),
        (PackedBatches(samples, 2, 16, seed=1), "seed was 0 and is 1"),
    ]:
        with pytest.raises(pb.ConfigurationError, match=message):
            wrong.load_state_dict(state)
    batches = PackedBatches(samples, 2, 16)
    for broken in [{"epoch": -1}, {"position": "1"}, {"position": 9}]:
        with pytest.raises((pb.FileFormatError, pb.ConfigurationError), match=r"epoch|position"):
            batches.load_state_dict({**state, **broken})
    assert (batches.epoch, batches.position) == (0, 0)


def test_what_cannot_be_packed_is_refused():
    with pytest.raises(pb.ConfigurationError, match=r"data.jsonl:2 has 9 tokens, a row 8"):
        PackedBatches(samples_of([5, 9]), 2, 8)
    with pytest.raises(pb.ConfigurationError, match="no samples"):
        PackedBatches([], 2, 8)
    [sample] = samples_of([5])
    with pytest.raises(pb.ConfigurationError, match="no token of a:1 has a loss"):
        PackedBatches([Sample(sample.tokens, np.full(5, -100, np.int32), "a:1")], 2, 8)
    with pytest.raises(pb.ConfigurationError, match="batch_size"):
        PackedBatches(samples_of([5]), 0, 8)
    with pytest.raises(pb.ConfigurationError, match="9 tokens, a row 8"):
        describe(samples_of([9]), 8)
    with pytest.raises(pb.ConfigurationError, match="no samples"):
        describe([], 8)


def test_samples_have_a_fingerprint():
    samples = samples_of([5, 9])
    assert fingerprint(samples) == fingerprint(samples_of([5, 9]))
    one, two = samples
    joined = Sample(np.concatenate([one.tokens, two.tokens]), np.concatenate([one.labels, two.labels]), "a:1")
    others = [[two, one], [one], [joined], [Sample(one.tokens, one.tokens, "a:1"), two]]
    assert len({fingerprint(each) for each in [samples, *others]}) == 5
    assert fingerprint([Sample(np.arange(3), np.arange(3), "")]) == "2212fc2087e53bce9b663ac3d42cc52a"


def test_samples_are_described():
    told = describe(samples_of([5, 9, 2]), 10)
    assert {name: told[name] for name in ("samples", "tokens", "longest", "median", "rows", "fill_rate")} == {
        "samples": 3, "tokens": 16, "longest": 9, "median": 5, "rows": 2, "fill_rate": 0.8,
    }  # fmt: skip
    assert told["loss_tokens"] == sum(sample.loss_tokens for sample in samples_of([5, 9, 2]))
    assert json.loads(json.dumps(told)) == told
