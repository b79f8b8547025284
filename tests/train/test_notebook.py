"""What a notebook shows of a trainer, before, while and after it trains."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from base64 import b64decode

import pytest

import pullback as pb

from .test_observers import Ends, X, Y, fit, trainer
from .test_report import EVIL, Outline, said


def words(trainer):
    return said(trainer._repr_html_())


def test_a_trainer_that_was_not_used():
    text = words(trainer(clip_norm=0.5))
    assert text.startswith("Trainer|not trained yet|Linear|") and "clip_norm|0.5" in text and "4 parameters" in text


def test_figures_and_the_loss_of_a_finished_run(tmp_path):
    made = trainer(folder=tmp_path)
    fit(made, validation=[(X, Y)])
    text = words(made)
    for expected in ("finished", "step 6 / 6", "epoch 2", "validation_loss", "samples/s", str(tmp_path)):
        assert expected in text, expected
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', made._repr_html_())
    picture = b64decode(data).decode()
    ElementTree.fromstring(picture)
    assert "validation" in picture and "script" not in picture
    assert repr(made) == "<Trainer of Linear: step 6, epoch 2, finished>"


class Looks(pb.train.Callback):
    """Shows the trainer while it trains."""

    def on_step(self, trainer, record):
        self.seen = words(trainer)


def test_a_run_under_way_and_one_that_was_stopped():
    looks = Looks()
    made = trainer(callbacks=[looks, Ends("enough")])
    fit(made)
    assert "Trainer|running|" in looks.seen
    assert "Trainer|stopped: enough|" in words(made)


def test_a_run_that_failed_says_why():
    made = trainer(callbacks=[Ends(ValueError(EVIL))])
    with pytest.raises(ValueError, match="alert"):
        fit(made)
    assert "failed: ValueError" in words(made) and "script" not in Outline(made._repr_html_()).tags
