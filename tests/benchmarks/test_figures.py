"""Tables of README and docs are those that the kept run gives."""

from __future__ import annotations

import pytest

from benchmarks.figures import run as runs, tables
from benchmarks.figures.__main__ import main
from benchmarks.measure import Measurement

KEPT = runs.Run.read(runs.KEPT)


@pytest.mark.parametrize("page", tables.PAGES)
def test_tables_are_those_of_the_kept_run(page):
    text = (runs.ROOT / page).read_text()
    assert "<!-- figures: " in text
    assert tables.filled(text, KEPT) == text, "write `python -m benchmarks.figures tables`"


def test_every_table_stands_somewhere():
    text = "".join((runs.ROOT / page).read_text() for page in tables.PAGES)
    assert [name for name in tables.TABLES if f"<!-- figures: {name} -->" not in text] == []


def test_the_run_names_machine_versions_and_commit():
    assert "cores of" in KEPT.machine
    assert {"NumPy", "PyTorch", "JAX"} <= set(KEPT.versions)
    assert KEPT.commit
    assert not KEPT.commit.endswith("-dirty")
    assert all(word in tables.source(KEPT) for word in (KEPT.machine, KEPT.day, KEPT.python, KEPT.commit))


def small_run(**values):
    measurements = [Measurement("b", "w", system, "time", value, "us") for system, value in values.items()]
    return runs.Run("2026-01-02", "abc", "2 cores of a processor", "3.11", {"NumPy": "2.0"}, measurements)


def test_a_table_has_values_and_ratios_to_the_best_of_a_peer():
    table = tables.Table((tables.Row("work", "b", "w"),), {"one": ("one", "other"), "absent": ("absent",)})
    lines = table.markdown(small_run(pullback=1500.0, one=6000.0, other=3000.0)).splitlines()
    assert lines[0] == "| | Pullback | of one | of absent |"
    assert lines[2] == "| work | 1.50 ms | 0.50 | |"


def test_a_measurement_that_is_not_there_is_named():
    with pytest.raises(KeyError, match="b / w / pullback / time"):
        tables.Table((tables.Row("work", "b", "w"),), {}).markdown(small_run(torch=1.0))


def test_a_changed_figure_is_noticed():
    page = "before\n<!-- figures: source -->\nold\n<!-- end of figures -->\nafter\n"
    new = tables.filled(page, small_run(pullback=1.0))
    assert new.startswith("before\n<!-- figures: source -->\nMeasured on 2026-01-02 at commit abc")
    assert new.endswith("\n<!-- end of figures -->\nafter\n")
    assert tables.filled(new, small_run(pullback=1.0)) == new
    with pytest.raises(ValueError, match="there is no table nonsense; there are eager"):
        tables.filled("<!-- figures: nonsense -->\n<!-- end of figures -->", KEPT)


def test_a_run_is_kept_as_it_was(tmp_path):
    made = runs.measure(["second-order"], quick=True)
    made.write(tmp_path / "run.json")
    assert runs.Run.read(tmp_path / "run.json") == made
    assert {m.benchmark for m in made.measurements} == {"second-order"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_quick_run_does_not_replace_the_kept_one(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--quick"])
    assert "name another --file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [(0.5, "us", "0.500 µs"), (12.345, "us", "12.3 µs"), (2.5e6, "us", "2.50 s"), (3 * 2**30, "bytes", "3.00 GiB"),
     (512.0, "bytes", "0.500 KiB"), (7.4, "ns", "7.40 ns"), (2.38, "s", "2.38 s")],
)  # fmt: skip
def test_values_are_shown_with_three_digits(value, unit, expected):
    assert tables.shown(value, unit) == expected


def test_some_benchmarks_measured_once_more():
    first, more = small_run(pullback=1.0, torch=2.0), small_run(pullback=3.0)
    more.commit = "def"
    both = first.with_again(more)
    assert [(m.system, m.value) for m in both.measurements] == [("pullback", 3.0)]
    assert (both.commit, both.again) == ("abc", {"b": "def"})
    assert "at commit abc, `b` once more at def, two threads" in tables.source(both)
    more.machine = "another"
    with pytest.raises(ValueError, match="machine is another"):
        first.with_again(more)
