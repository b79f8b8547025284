"""Pages are run as readers would run them, and what goes wrong names the page."""

from __future__ import annotations

import pytest

from website.execution import PageError, blocks, run_alone, run_here

PAGE = """# A page

```python
x = 2
def double(y):
    return 2 * y
print("made", x)
```

```python
>>> double(x)
4
```

=== "Tab"

    ```python
    print(double(3))
    ```

```text
never run
```

```sh
echo from the shell > made.txt
cat made.txt
```
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        page = tmp_path / "page.md"
        page.write_text(text)
        return page

    return write


def test_blocks_share_variables_and_their_output_is_kept(write):
    outputs = [output.text for output in run_here(write(PAGE))]
    assert outputs == ["made 2\n", "", "6\n", "from the shell\n"]


def test_blocks_know_where_they_end_and_how_they_are_indented():
    found = blocks(PAGE)
    assert [(block.language, block.indent) for block in found] == [
        ("python", ""), ("python", ""), ("python", "    "), ("sh", ""),
    ]  # fmt: skip
    assert all(PAGE[: block.end].endswith("```") for block in found)
    assert PAGE.splitlines()[found[2].line].strip() == "print(double(3))"


def test_a_page_alone_runs_in_a_folder_of_its_own(write, tmp_path):
    run = run_alone(write(PAGE))
    assert [output.text for output in run.outputs] == ["made 2\n", "", "6\n", "from the shell\n"]
    assert "NumPy" in run.machine
    assert not (tmp_path / "made.txt").exists()


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected:\n    3"),
        ("```sh\necho before; exit 3\n```\n", "exit code 3\nbefore"),
        ("```sh\nfalse\necho after\n```\n", "exit code 1"),
    ],
)
def test_what_a_page_says_must_be_so(write, block, message):
    with pytest.raises(PageError) as caught:
        list(run_here(write(block)))
    assert message in str(caught.value)


def test_the_folder_of_a_page_is_not_shown(write):
    (output,) = run_here(write('```sh\necho "written: $PWD/made.txt"\n```\n'))
    assert output.text == "written: made.txt\n"


def test_an_error_names_the_line_of_the_page(write):
    page = write("# Title\n\n```python\nx = 1\n\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        list(run_here(page))
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno) == (str(page), 5)
    with pytest.raises(PageError, match=r"(?s)page\.md.*, line 6,.*ZeroDivisionError"):
        run_alone(page)


def test_figures_are_kept_with_their_titles(write):
    pytest.importorskip("matplotlib")
    page = write(
        "```python\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\n"
        "ax.set_title('Loss')\n```\n```python\nprint(plt.get_fignums())\n```\n"
    )
    first, second = run_alone(page).outputs
    assert [title for title, _ in first.figures] == ["Loss"]
    assert first.figures[0][1].rstrip().endswith("</svg>")
    assert (second.text, second.figures) == ("[]\n", [])
