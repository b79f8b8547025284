"""Batches: their order, their state, and the thread that makes them in advance."""

from __future__ import annotations

import gc
import json
import threading
import time
import traceback

import numpy as np
import pytest

import pullback as pb
from pullback.data import ArrayDataset, Batches, Subset, TextWindows

from ..backends.installed import optional, require

torch = optional("torch")


def values(batches):
    return [batch[0].tolist() for batch in batches]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("drop_last", "count"), [(False, 4), (True, 3)])
def test_an_epoch_has_every_sample_once(prefetch, shuffle, drop_last, count):
    batches = Batches(np.arange(10), 3, shuffle=shuffle, drop_last=drop_last, prefetch=prefetch)
    found = values(batches)
    assert len(batches) == len(found) == count
    flat = [value for batch in found for value in batch]
    assert len(set(flat)) == len(flat) == (9 if drop_last else 10)
    assert (flat == sorted(flat)) != shuffle
    assert batches.epoch == 1 and batches.position == 0


def test_the_order_depends_on_seed_and_epoch_alone():
    def epochs(seed):
        return values(Batches(np.arange(50), 50, shuffle=True, seed=seed)) + values(
            Batches(np.arange(50), 50, shuffle=True, seed=seed).of_epoch(1)
        )

    assert epochs(0) == epochs(0)
    found = epochs(0) + epochs(1)
    assert all(found[i] != found[j] for i in range(4) for j in range(i))
    with pb.random.using(5):
        assert values(Batches(np.arange(50), 50, shuffle=True)) == found[:1]
    pb.random.seed(0)
    assert found[0] != pb.random.permutation(50).tolist()  # nothing to do with a model's numbers of the same seed


@pytest.mark.parametrize("prefetch", [0, 2, 100])
@pytest.mark.parametrize("consumed", range(10))
def test_a_state_is_gone_on_from_bit_for_bit(prefetch, consumed):
    def made():
        return Batches(np.arange(11), 3, shuffle=True, seed=4, prefetch=prefetch, transform=noisy)

    def noisy(batch):
        return batch[0] + pb.random.normal(batch[0].shape, dtype=pb.float64), batch[0]

    def epochs(batches):
        while True:
            yield from batches

    undisturbed = epochs(made())
    expected = [next(undisturbed) for _ in range(20)]
    first = made()
    stream = epochs(first)
    for _ in range(consumed):
        next(stream)
    state = json.loads(json.dumps(first.state_dict()))
    stream.close()
    second = made()
    second.load_state_dict(state)
    rest = epochs(second)
    for wanted in expected[consumed:]:
        for a, b in zip(next(rest), wanted):
            assert a.tolist() == b.tolist()
    rest.close()
    undisturbed.close()


def test_random_numbers_differ_from_batch_to_batch_and_from_epoch_to_epoch():
    batches = Batches(np.arange(6), 2, transform=lambda batch: (pb.random.uniform((3,), dtype=pb.float64),))
    found = values(batches) + values(batches)
    assert len({tuple(numbers) for numbers in found}) == 6


def test_prefetching_does_not_count_as_consumed():
    made = []
    batches = Batches(np.arange(8), 1, prefetch=4, transform=lambda batch: made.append(batch) or batch)
    iterator = iter(batches)
    next(iterator)
    while len(made) < 5:  # the one handed out and four in advance
        time.sleep(0.001)
    assert batches.state_dict()["position"] == 1
    iterator.close()
    assert values(batches) == [[i] for i in range(1, 8)]


def test_a_loop_left_early_is_gone_on_with_and_can_be_restarted():
    batches = Batches(np.arange(6), 2)
    for batch in batches:
        assert batch[0].tolist() == [0, 1]
        break
    assert values(batches) == [[2, 3], [4, 5]]
    next(iter(batches))
    batches.restart(1)
    assert (batches.epoch, values(batches)) == (1, [[0, 1], [2, 3], [4, 5]])


def test_reading_another_epoch_does_not_move_the_position():
    batches = Batches(np.arange(9), 2, shuffle=True)
    next(iter(batches))
    before = batches.state_dict()
    assert values(batches.of_epoch(3)) == values(batches.of_epoch(3))
    assert values(batches.of_epoch(3, 2)) == values(batches.of_epoch(3))[2:]
    assert batches.state_dict() == before
    for number in range(5):
        picked = np.arange(9)[batches.indices(3, number)]
        assert picked.tolist() == values(batches.of_epoch(3))[number]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 3}, "batch_size was 2 and is 3"),
        ({"seed": 8}, "seed was 0 and is 8"),
        ({"shuffle": True}, "shuffle was False and is True"),
        ({"dataset": np.arange(9)}, "length was 8 and is 9"),
    ],
)
def test_the_state_of_other_data_is_refused(change, words):
    state = Batches(np.arange(8), 2).state_dict()
    other = Batches(**{"dataset": np.arange(8), "batch_size": 2, **change})
    with pytest.raises(pb.ConfigurationError, match=words):
        other.load_state_dict(state)
    assert (other.epoch, other.position) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.arange(3), 0), pb.ConfigurationError, "batch_size must be an integer of at least 1, got 0"),
        ((np.arange(3), 2.5), pb.ConfigurationError, "got 2.5"),
        (([], 2), pb.ShapeError, "dataset is empty"),
        ((np.arange(3), 4, False, 0, True), pb.ShapeError, "3 samples make no batch of 4"),
        ((iter("abc"), 4), pb.ConfigurationError, "has a length and items"),
        ((np.arange(3), 1, False, -1), pb.ConfigurationError, "seed"),
        ((np.arange(3), 1, False, 0, False, -1), pb.ConfigurationError, "prefetch"),
    ],
)
def test_what_gives_no_batches_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        Batches(*arguments)


# -- putting samples together -----------------------------------------------------------------------


def test_samples_of_any_sequence_are_stacked():
    samples = [(np.full(2, i), float(i), pb.full((1,), float(i))) for i in range(5)]
    first, _ = Batches(samples, 3)
    assert first[0].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert first[1].dtype == np.float32 and first[1].tolist() == [0.0, 1.0, 2.0]
    assert isinstance(first[2], pb.Tensor) and first[2].shape == (3, 1)
    plain, _ = Batches([4, 5, 6], 2)
    assert [part.tolist() for part in plain] == [[4, 5]]


def test_samples_that_do_not_fit_together_are_named():
    with pytest.raises(pb.ShapeError, match=r"part 0 .* \(2,\) and \(3,\)"):
        next(iter(Batches([(np.zeros(2),), (np.zeros(3),)], 2)))
    with pytest.raises(pb.ShapeError, match="parts"):
        next(iter(Batches([(1, 2), (1,)], 2)))
    with pytest.raises(pb.DtypeError, match=r"part 0 .* dict.*Pass `collate`"):
        next(iter(Batches([{"x": 1}, {"x": 2}], 2)))
    with pytest.raises(pb.DtypeError, match=r"part 1 .* NoneType.*Pass `collate`"):
        next(iter(Batches([(1, None), (2, None)], 2)))
    lengths = Batches(["a", "bcd"], 2, collate=lambda samples: [len(sample) for sample in samples])
    assert list(lengths) == [[1, 3]]


class Table:
    """What knows how to become an array, as those of pandas do."""

    def __init__(self, array):
        self.to_numpy = lambda: array


@pytest.mark.parametrize(
    "make",
    [
        lambda: ArrayDataset(np.arange(20), np.arange(20) * 2),
        lambda: Subset(ArrayDataset(np.arange(30), np.arange(30) * 2), np.arange(20)),
        lambda: Subset([(i, 2 * i) for i in range(30)], range(20)),
        lambda: [(i, 2 * i) for i in range(20)],
        lambda: (np.arange(20), np.arange(20) * 2),
        lambda: (list(range(20)), [2 * i for i in range(20)]),
        lambda: (np.arange(20), torch.arange(20) * 2),
        lambda: (Table(np.arange(20)), Table(np.arange(20) * 2)),
    ],
    ids=["arrays", "subset", "subset-of-samples", "samples", "tuple", "lists", "torch", "table"],
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_kind_of_dataset_gives_the_same_batches(make, shuffle):
    reference = Batches(ArrayDataset(np.arange(20), np.arange(20) * 2), 6, shuffle=shuffle, seed=2)
    for batch, wanted in zip(Batches(make(), 6, shuffle=shuffle, seed=2), reference):
        assert [part.tolist() for part in batch] == [part.tolist() for part in wanted]


def test_windows_of_text_come_in_batches():
    (inputs, targets), *_ = Batches(TextWindows(np.arange(100), 8), 4, shuffle=True)
    assert inputs.shape == (4, 8) and (targets == inputs + 1).all()


@pytest.mark.parametrize("shuffle", [False, True])
def test_arrays_of_other_libraries_stay_theirs(shuffle):
    dataset = ArrayDataset(torch.arange(5.0), pb.asarray(np.arange(5.0), device="torch:cpu"), np.arange(5.0))
    for raw, tensor, array in Batches(dataset, 2, shuffle=shuffle):
        assert isinstance(raw, torch.Tensor) and tensor.device == "torch:cpu" and isinstance(array, np.ndarray)
        assert raw.tolist() == tensor.tolist() == array.tolist()


# -- the thread --------------------------------------------------------------------------------------


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "pullback-prefetch"]


class Failing:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 5:
            raise LookupError("sample 5 is broken")
        return index


@pytest.mark.parametrize("prefetch", [0, 1, 20])
def test_an_error_in_the_dataset_arrives_with_its_traceback(prefetch):
    batches = Batches(Failing(), 2, prefetch=prefetch)
    found = []
    with pytest.raises(LookupError, match="sample 5 is broken") as caught:
        found.extend(batch[0].tolist() for batch in batches)
    assert found == [[0, 1], [2, 3]]
    assert batches.state_dict()["position"] == 2
    assert "__getitem__" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    del caught
    assert not threads()


@pytest.mark.parametrize("how", ["close", "drop", "end"])
def test_the_thread_ends_with_its_iterator(how):
    iterator = iter(Batches(np.arange(100), 1, prefetch=2))
    next(iterator)
    assert len(threads()) == 1
    if how == "close":
        iterator.close()
    elif how == "end":
        list(iterator)
    del iterator
    gc.collect()
    assert not threads()


def test_the_thread_stays_within_its_bound():
    made = []
    batches = Batches(np.arange(100), 1, prefetch=3, transform=lambda batch: made.append(0) or batch)
    iterator = iter(batches)
    for consumed in range(1, 6):
        next(iterator)
        time.sleep(0.01)
        assert len(made) <= consumed + 3 + 1  # three on the shelf and one in the thread's hands
    iterator.close()


def test_the_thread_works_in_the_modes_of_its_consumer():
    require("torch:cpu")
    batches = Batches(np.arange(3), 1, prefetch=2, transform=lambda batch: pb.asarray([1.0]).device)
    with pb.device("torch:cpu"):
        assert list(batches) == ["torch:cpu"] * 3
