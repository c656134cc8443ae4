"""The code on every page runs and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages


@pytest.mark.parametrize("path", pages.pages(), ids=lambda path: str(path.relative_to(pages.ROOT)))
def test_page(path: Path) -> None:
    done = pages.run_apart(path)
    assert done.returncode == 0, f"\n{done.stdout}\nmake docs-outputs rewrites the output shown, once the code is right"


# ---------------------------------------------------------------- the harness itself


def checked(tmp_path: Path, text: str, write: bool = False) -> tuple[list[str], str]:
    page = tmp_path / "Sample.md"
    page.write_text(text)
    return pages.check(page, write), page.read_text()


GOOD = """\
# A page

```python
x = 2
def f(y):
    return 1 / y
```

```python
print(x)
x + 1
```

```output
2
3
```

- in a list, with what differs from run to run left out:

    ```python
    object()
    ```

    ```output
    <object object at 0x...>
    ```

```python
f(0)
```

```output
Traceback (most recent call last):
  File "example.py", line 7, in <module>
    f(0)
  File "example.py", line 3, in f
    return 1 / y
ZeroDivisionError: division by zero
```

```python title="hello.py"
import sys
print("hello", *sys.argv[1:])
```

```console
$ python hello.py a b
hello a b
$ python hello.py; echo "exit code $?"
hello
exit code 0
```

```sh
make test
```
"""


def test_a_good_page_passes_unchanged(tmp_path: Path) -> None:
    assert checked(tmp_path, GOOD, write=True) == ([], GOOD)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\n3\n", "\n4\n", "the output differs"),
        ("```output\n2\n3\n```", "", "prints what the page does not show"),
        ("division by zero\n", "another message\n", "the output differs"),
        ('"example.py", line 3', '"example.py", line 2', "the output differs"),
        ("f(0)\n```\n\n```output", "f(0)\n```\n\ntext\n\n```output", "raises, and the page does not show it"),
        ("hello a b", "hello b a", "the session differs"),
        ("echo", "false", "exit code 1"),
        ("python hello.py a b", "true", "the session differs"),
        ("make test", "make nothing", "no target nothing"),
        ("make test", "rm -r x", "not run by anything"),
        ("```sh", "```bash", "nothing runs a block of language 'bash'"),
        ("```python title", "```pyhton title", "nothing runs a block of language 'pyhton'"),
        ("hello.py", "other.py", None),
    ],
)
def test_faults_of_a_page_are_found(tmp_path: Path, old: str, new: str, problem: str | None) -> None:
    problems, text = checked(tmp_path, GOOD.replace(old, new))
    if problem is None:
        assert problems == []
    else:
        assert any(problem in found for found in problems), problems
        assert text == GOOD.replace(old, new), "only --write may touch a page"


def test_a_file_that_nothing_runs_is_found(tmp_path: Path) -> None:
    problems, _ = checked(tmp_path, '```python title="a.py"\nprint(1)\n```\n')
    assert len(problems) == 1 and "no console block after it runs a.py" in problems[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n3\n", "\n4\n"),
        ("\n```output\n2\n3\n```\n", ""),
        ("hello a b\n", "hi\n"),
        ("hello\nexit", "exit"),
        ("by zero", ""),
    ],
)
def test_writing_restores_the_real_output(tmp_path: Path, old: str, new: str) -> None:
    problems, text = checked(tmp_path, GOOD.replace(old, new), write=True)
    assert problems and text == GOOD


def test_writing_removes_output_that_is_no_more(tmp_path: Path) -> None:
    _, text = checked(tmp_path, "```python\nx = 1\n```\n\n```output\n1\n```\n", write=True)
    assert text == "```python\nx = 1\n```\n"


def test_images_are_the_ones_the_code_writes(tmp_path: Path) -> None:
    page = "```python\nfrom pathlib import Path\n_ = Path('img/a.svg').write_text('<svg/>')\n```\n"
    assert len(checked(tmp_path, page)[0]) == 1
    checked(tmp_path, page, write=True)
    assert (tmp_path / "img" / "a.svg").read_text() == "<svg/>"
    assert checked(tmp_path, page)[0] == []
