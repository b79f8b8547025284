"""The report: a page that needs nothing but itself, honest and small, whatever the run was like."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb
from pullback.train import Report, report as module

HISTORY = SimpleNamespace(stop_reason=None)


class Outline(HTMLParser):
    """What is in a page: tags that fit together, words, and everything that could load or run something."""

    EMPTY = ("meta", "br", "img", "link")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


def said(text):
    """The words of a piece of HTML, without what only separates them."""
    words = [word.strip(" \u00b7") for word in Outline(text).words]
    return "|".join(word for word in words if word)


class Net(pb.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = pb.nn.Linear(3, 4)
        self.second = pb.nn.Linear(4, 2)
        self.scale = pb.tensor(1.0, requires_grad=True)
        self.second.freeze()


def trainer_in(folder, **more):
    optimizer = SimpleNamespace(param_groups=[{"params": [], "lr": 0.125}])
    return SimpleNamespace(folder=folder, step=0, total_steps=None, model=Net(), optimizer=optimizer, **more)


def run(report, trainer, first, last, name="accuracy"):
    for step in range(first, last + 1):
        trainer.step = step
        values = {"step": step, "epoch": 1, "seconds": float(step), "loss": 1.0 / step, "learning_rate": 0.125}
        report.on_step(trainer, {**values, "gradient_norm": 2.0, "samples_per_second": 100.0})
        if step % 10 == 0:
            validation = {f"validation_{name}": 0.5 + step / 1000, "validation_loss": 3.0 / step}
            report.on_validation(trainer, {**values, **validation})
            report.on_epoch(trainer, {**values, **validation, name: 0.75})


def written(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_page_has_the_title_it_was_given(tmp_path):
    report, trainer = Report(title="Digits <1>"), trainer_in(tmp_path)
    report.on_start(trainer)
    report.on_end(trainer, HISTORY)
    assert "Digits <1>|finished" in "|".join(Outline(written(tmp_path)).words)


def test_the_page_has_charts_values_settings_and_model(tmp_path):
    report, trainer = (
        Report(),
        trainer_in(tmp_path, clip_norm=1.5, scaler=Outline.__new__(Outline), loss=pb.cross_entropy),
    )
    report.on_start(trainer)
    run(report, trainer, 1, 30)
    report.on_end(trainer, HISTORY)
    outline = Outline(written(tmp_path))
    assert outline.tags.count("svg") == 6
    words = "|".join(outline.words)
    for expected in (
        "Training of Net|finished",
        "Throughput|, samples/s",
        "loss|validation|0.1|0.1|30|0.3|10|",
        "accuracy|validation|0.53|0.51|10|0.53|30|",
        "clip_norm|1.5",
        "scaler|Outline",
        "loss|cross_entropy",
        "lr=0.125",
        "first|Linear|weight 4\u00d73, bias 4|16|",
        "second|Linear|weight 2\u00d74 (frozen), bias 2 (frozen)|10",
        "(itself)|Net|scale scalar|1",
        "parameters|27",
        "time|30.0 s",
    ):
        assert expected in words, expected
    ElementTree.parse(tmp_path / "loss.svg")


def test_further_charts_are_of_the_model_as_it_is_and_none_of_a_failed_run(tmp_path):
    trainer = trainer_in(tmp_path)
    chart = lambda trainer: [module.line_chart([module.Line("a", [(0, 1.0)])], title=f"Chart at {trainer.step}")]
    report = Report(charts=chart)
    report.on_start(trainer)
    run(report, trainer, 1, 10)
    assert ">Chart at 10</text>" in written(tmp_path)
    report.on_error(trainer, ValueError("what"))
    assert "Chart at" not in written(tmp_path) and ">Loss" in written(tmp_path)
    trainer.step = 11
    report.on_end(trainer, SimpleNamespace(stop_reason=None))
    assert ">Chart at 11</text>" in written(tmp_path)


def test_the_page_loads_nothing_and_runs_its_own_script_only(tmp_path):
    report, trainer = Report(), trainer_in(tmp_path)
    report.on_start(trainer)
    run(report, trainer, 1, 10)
    report.on_end(trainer, HISTORY)
    text, outline = written(tmp_path), Outline(written(tmp_path))
    assert not {name for _, name, _ in outline.attributes} & {"src", "href", "srcset", "action", "onload", "onclick"}
    assert not re.search(r"@import|url\(|//(?!www.w3.org/2000/svg)", text)
    (script,) = re.findall("<script>(.*?)</script>", text, re.S)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text


EVIL = "</style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x00\x1b]"


def test_names_and_errors_of_users_are_shown_not_executed(tmp_path):
    harmless, hostile = tmp_path / "harmless", tmp_path / "hostile"
    tags = []
    for folder, word in ((harmless, "word"), (hostile, EVIL)):
        report = Report()
        trainer = trainer_in(folder, schedule=word)
        trainer.model = type(word, (Net,), {})() if "\x00" not in word else type(word.replace("\x00", ""), (Net,), {})()
        trainer.optimizer.param_groups[0][word] = word
        report.on_start(trainer)
        run(report, trainer, 1, 20, name=word)
        report.on_error(trainer, ValueError(word))
        outline = Outline(written(folder))
        tags.append(outline.tags)
        assert not [a for a in outline.attributes if a[1].startswith("on")]
    assert tags[0] == tags[1]
    assert "alert(1)" in "".join(outline.words)
    assert "\x00" not in written(hostile)


def test_an_error_is_shown_with_its_traceback(tmp_path):
    report, trainer = Report(), trainer_in(tmp_path)
    report.on_error(trainer, ValueError("before the start"))
    assert not list(tmp_path.iterdir())
    report.on_start(trainer)
    try:
        raise pb.NumericalInstabilityError("gradient of `log` is inf")
    except pb.NumericalInstabilityError as error:
        report.on_error(trainer, error)
    words = "".join(Outline(written(tmp_path)).words)
    assert "failed: NumericalInstabilityError" in words and "gradient of `log` is inf" in words
    assert "test_report.py" in words and "nothing to show yet" in words


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (lambda report, trainer: report.on_end(trainer, SimpleNamespace(stop_reason="no gain")), "stopped: no gain"),
        (lambda report, trainer: report.on_error(trainer, KeyboardInterrupt()), "stopped: interrupted (Ctrl-C)"),
        (lambda report, trainer: report.on_error(trainer, ValueError("no\nway")), "failed: ValueError: no way"),
        (lambda report, trainer: report.on_end(trainer, HISTORY), "finished"),
        (lambda report, trainer: None, "running"),
    ],
)
def test_the_page_says_how_the_run_is(tmp_path, ending, status):
    report, trainer = Report(tmp_path / "deep" / "own.html"), trainer_in(None)
    report.on_start(trainer)
    run(report, trainer, 1, 10)
    ending(report, trainer)
    text = (tmp_path / "deep" / "own.html").read_text(encoding="utf-8")
    assert status in Outline(text).words
    assert ('http-equiv="refresh"' in text) == (status == "running")  # who looks sees it go on
    assert ("<p data-written=" in text) == (status == "running")  # or sees that it does not
    assert (tmp_path / "deep" / "loss.svg").exists() == (status != "running")
    assert {path.name for path in (tmp_path / "deep").iterdir()} <= {"own.html", "loss.svg"}


def test_pages_are_not_written_for_more_than_a_fiftieth_of_the_time(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, time=lambda: 0.0)
    monkeypatch.setattr(module, "time", clock)
    report, trainer, pages = Report(tmp_path / "a.html"), trainer_in(tmp_path), []

    def write(*_):
        pages.append(clock.now)
        clock.now += 0.01

    monkeypatch.setattr(report, "_write", write)
    report.on_start(trainer)
    for step in range(1000):
        report.on_validation(trainer, {"step": step, "validation_loss": 1.0})
        clock.now += 0.001
    assert pages[0] == 0.0 and 2 <= len(pages) <= 4


def test_a_long_run_has_a_small_page_and_a_small_state(tmp_path):
    report, trainer = Report(), trainer_in(tmp_path)
    report.on_start(trainer)
    noise = np.random.default_rng(0).lognormal(size=20_000)
    for step in range(1, 20_001):
        report.on_step(trainer, {"step": step, "loss": float(noise[step - 1]), "gradient_norm": 1 / step})
    report.on_end(trainer, HISTORY)
    assert (tmp_path / "report.html").stat().st_size < 200_000
    assert len(json.dumps(report.state_dict())) < 200_000


def test_a_resumed_report_has_the_whole_run(tmp_path):
    texts = []
    for folder, cut in ((tmp_path / "whole", None), (tmp_path / "broken", 13)):
        report, trainer = Report(), trainer_in(folder)
        report.on_start(trainer)
        run(report, trainer, 1, cut or 40)
        if cut:
            state = json.loads(json.dumps(report.state_dict(), allow_nan=False))
            run(report, trainer, cut + 1, cut + 9)  # lost with the process
            report, trainer = Report(), trainer_in(folder)
            trainer.step = cut
            report.load_state_dict(state)
            report.on_start(trainer)
            run(report, trainer, cut + 1, 40)
        report.on_end(trainer, HISTORY)
        texts.append(re.sub(r"\d{4}-\d\d-\d\d [\d:]{8}", "DATE", written(folder)))
    assert texts[0] == texts[1]


def test_a_new_run_forgets_the_old_one_and_more_training_does_not(tmp_path):
    report, trainer = Report(), trainer_in(tmp_path)
    for _ in range(2):
        trainer.step = 0
        report.on_start(trainer)
        run(report, trainer, 1, 5)
    assert len(report._curves["loss"]["train"]) == 5
    report.on_start(trainer)
    run(report, trainer, 6, 8)
    assert len(report._curves["loss"]["train"]) == 8


class Stop(pb.train.Callback):
    """Ends a run as a crash would."""

    def __init__(self, step):
        self.step = step

    def on_step(self, trainer, record):
        if record["step"] == self.step:
            raise RuntimeError("crash")


def test_the_report_of_a_real_run_that_crashed_and_was_resumed(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(40, 3))
    data = (x, x @ np.array([[1.0], [2.0], [3.0]]))

    def trainer(folder, *more):
        pb.random.seed(0)
        model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.Tanh(), pb.nn.Linear(4, 1))
        optimizer = pb.optim.Adam(model.parameters(), lr=0.01)
        return pb.train.Trainer(
            model,
            pb.mse_loss,
            optimizer,
            schedule=pb.optim.schedules.Cosine(20),
            clip_norm=1.5,
            metrics=["mae"],
            folder=folder,
            checkpoint_every=5,
            callbacks=[Report(), *more],
        )

    def fit(trainer, **how):
        trainer.fit(pb.data.Batches(data, 8), epochs=4, validation=pb.data.Batches(data, 40), **how)

    fit(trainer(tmp_path / "whole"))
    with pytest.raises(RuntimeError, match="crash"):
        fit(trainer(tmp_path / "broken", Stop(13)))
    assert "RuntimeError: crash" in written(tmp_path / "broken")
    fit(trainer(tmp_path / "broken", Stop(0)), resume=True)

    def shown(folder):
        """The charts but that of the throughput, and the table of values."""
        charts = re.findall("<svg.*?</svg>", written(folder))
        return [chart for chart in charts if "Throughput" not in chart]

    assert len(shown(tmp_path / "whole")) == 5  # loss, the same for phones, learning rate, gradient norm, mae
    assert shown(tmp_path / "whole") == shown(tmp_path / "broken")
    words = "|".join(Outline(written(tmp_path / "broken")).words)
    assert "finished" in words and "clip_norm|1.5" in words and "schedule|Cosine(" in words
    assert "0|Linear|weight 4\u00d73, bias 4|16" in words


def test_without_a_folder_the_error_says_what_to_write():
    with pytest.raises(pb.errors.ConfigurationError, match=r"Report\('report.html'\).*folder="):
        Report().on_start(trainer_in(None))
