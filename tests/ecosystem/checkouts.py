"""Runs programs of public repositories under real PyTorch and under compat, and compares the numbers that they print.

    python tests/ecosystem/checkouts.py FOLDER [--table docs/start/packages.md] [NAME ...]

``FOLDER`` holds checkouts of the repositories that ``PROGRAMS`` below names (pytorch/programs, karpathy/nanoGPT, ...),
each under its own name. Each program runs unmodified in a copy of its folder. Where it would download a data set, it
finds a small one of random numbers in the same format, which this file writes. Printed numbers are compared in order,
except times; of a package's own tests, the numbers of tests and failures are compared.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image
from run import OUT, ROOT, install

HERE = Path(__file__).parent
SITE = OUT / "checkouts"
PACKAGES = ["torchvision", "pillow", "gymnasium[classic-control]", "pygame", "matplotlib", "six", "requests", "tqdm",
            "tabulate", "scipy", "tiktoken", "tensorboard", "pytest"]  # fmt: skip
BEGIN, END = "<!-- table of programs -->", "<!-- end of the programs -->"
#: Parts of lines that are times, process numbers, or file names.
TIMES = re.compile(
    r"(?im)^\d+\t|(time|data|speed|elapsed|secs?|ms/batch|it/s)[ :=|]*[\d.]+( *\( *[\d.]+\))?( *m?s\b)?"
    r"|[\d.]+ *(s|ms|us|secs?|seconds|it/s|s/it)\b|ms/batch +[\d.]+|\d+:\d+|0x[0-9a-f]+|/\S+"
)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e-?\d+)?")


# ---------------------------------------------------------------- data


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def mnist(folder: Path) -> None:
    """Images of random digits, in the program's folder and in its parent, where programs look."""
    rng = _random()
    for root in (folder / "data", folder.parent / "data"):
        raw = root / "MNIST" / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        for kind, n in (("train", 640), ("t10k", 200)):
            labels = rng.integers(0, 10, n, np.uint8)
            images = rng.integers(0, 60, (n, 28, 28), np.uint8)
            for image, label in zip(images, labels):
                image[2 * label : 2 * label + 8, 4:24] += 180
            parts = {
                f"{kind}-images-idx3-ubyte": np.array([2051, n, 28, 28], ">i4").tobytes() + images.tobytes(),
                f"{kind}-labels-idx1-ubyte": np.array([2049, n], ">i4").tobytes() + labels.tobytes(),
            }
            for name, content in parts.items():
                (raw / name).write_bytes(content)
                (raw / f"{name}.gz").write_bytes(gzip.compress(content))


def _pictures(folder: Path, n: int, size: tuple[int, int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, pixels in enumerate(_random().integers(0, 255, (n, *size, 3), np.uint8)):
        Image.fromarray(pixels).save(folder / f"{i}.jpg")


def imagenet(folder: Path) -> None:
    """A folder of images for each of two classes."""
    for split in ("train", "val"):
        for name in ("a", "b"):
            _pictures(folder / "sample" / split / name, 4, (240, 260))


def bsds(folder: Path) -> None:
    """Images of the segmentation data set."""
    for split in ("train", "test"):
        _pictures(folder / "dataset" / "BSDS300" / "images" / split, 8, (321, 481))


def cora(folder: Path) -> None:
    """A graph of papers, and the response of ``requests`` to a program that downloads it."""
    rng, n = _random(), 2708
    where = folder / "cora"
    where.mkdir(exist_ok=True)
    names = [f"Class{k}" for k in range(7)]
    words = rng.random((n, 60)) < 0.1
    lines = ["\t".join([str(i), *map(str, row.astype(int)), names[i % 7]]) for i, row in enumerate(words)]
    (where / "cora.content").write_text("\n".join(lines) + "\n")
    links = {(i, int(j)) for i in range(n) for j in rng.integers(0, n, 2) if i != j}
    (where / "cora.cites").write_text("".join(f"{i}\t{j}\n" for i, j in sorted(links)))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(where, "cora")
    (folder / "cora.tgz").write_bytes(packed.getvalue())
    (folder / "requests.py").write_text(
        "class get:\n"
        "    def __init__(self, url, stream=True):\n"
        "        self.raw = open('cora.tgz', 'rb')\n"
        "    def __enter__(self):\n        return self\n"
        "    def __exit__(self, *error):\n        self.raw.close()\n"
    )


def text(folder: Path) -> None:
    """A text of random words."""
    where = folder / "data" / "wikitext-2"
    where.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train", 300), ("valid", 60), ("test", 60)):
        rows = _random().integers(0, 200, (lines, 20))
        (where / f"{name}.txt").write_text("".join(" ".join(f"w{k}" for k in row) + " \n" for row in rows))


def shakespeare(folder: Path) -> None:
    """A text of random letters, where character models look for one."""
    letters = "".join(_random().choice(list("OGodabcdefgh ,.!\n"), 4000))
    for where in (folder, folder / "data" / "shakespeare_char"):
        where.mkdir(parents=True, exist_ok=True)
        (where / "input.txt").write_text(letters)


def style(folder: Path) -> None:
    """Weights of a style transfer network, of the program's own class."""
    program = "import sys, torch; sys.path.insert(0, 'neural_style'); from transformer_net import TransformerNet; "
    program += "torch.manual_seed(0); net = TransformerNet(); net.deconv3.conv2d.weight.data.mul_(40); "
    program += "net.deconv3.conv2d.bias.data.fill_(128); torch.save(net.state_dict(), 'style.pth')"
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    _pictures(folder / "content", 1, (90, 120))


# ---------------------------------------------------------------- programs


@dataclass
class Program:
    """A program of a repository, which runs by one or more commands.

    Attributes:
        folder: its folder, which begins with the repository's name.
        commands: the arguments of ``python``, one command after the other.
        data: writes its data.
        shows: which output is compared: its "numbers", all "letters", the outcome of
            "tests", or "nothing" except the exit status, as for profiles.
    """

    folder: str
    commands: tuple[str, ...]
    data: Callable[[Path], None] | None = None
    shows: str = "numbers"


#: Prints the image that a program has written to a file, as numbers.
_IMAGE = (
    "-c 'import sys, numpy, PIL.Image; a = numpy.asarray(PIL.Image.open(sys.argv[1]), float); print(a.mean(), a.std())'"
)
#: Runs a program that sets no seed.
_SEEDED = (
    "-c 'import random, runpy, sys, torch; torch.manual_seed(1); random.seed(1); sys.argv = sys.argv[1:]; "
    'runpy.run_path(sys.argv[0], run_name="__main__")\''
)
_NANO = (
    "train.py config/train_shakespeare_char.py --device=cpu --compile=False --eval_iters=2 --log_interval=1 "
    "--block_size=32 --batch_size=4 --n_layer=2 --n_head=2 --n_embd=32 --lr_decay_iters=20 --dropout=0.0 "
    "--eval_interval=10 --always_save_checkpoint=True"
)
_LANGUAGE = "main.py --epochs 1 --bptt 10 --emsize 32 --nhid 32 --dropout 0 --lr 1 --log-interval 5"
PROGRAMS: dict[str, Program] = {
    "dcgan": Program("examples/dcgan", (
        "main.py --dataset fake --dry-run --manualSeed 1 --imageSize 64 --batchSize 8 --ngf 8 --ndf 8 --workers 0",)),
    "fast_neural_style": Program("examples/fast_neural_style", (
        "neural_style/neural_style.py eval --content-image content/0.jpg --model style.pth --output-image out.png",
        f"{_IMAGE} out.png"), style),
    "gat": Program("examples/gat", ("main.py --epochs 3 --val-every 1 --hidden-dim 8 --dropout-p 0",), cora),
    "gcn": Program("examples/gcn", ("main.py --epochs 30 --val-every 5 --dropout-p 0",), cora),
    "imagenet": Program("examples/imagenet", (
        "main.py --epochs 1 -b 4 -j 0 -p 1 --seed 1 --lr 0.001 --no-accel sample",
        "main.py -e -b 4 -j 0 -p 1 --no-accel --resume checkpoint.pth.tar sample"), imagenet),
    "mnist": Program("examples/mnist", ("main.py --epochs 2 --log-interval 2",), mnist),
    "mnist_forward_forward": Program("examples/mnist_forward_forward", (
        f"{_SEEDED} main.py --epochs 3 --no_accel --train_size 200 --test_size 100",), mnist),
    "mnist_hogwild": Program("examples/mnist_hogwild", (
        "main.py --epochs 1 --num-processes 1 --log-interval 2",), mnist),
    "mnist_rnn": Program("examples/mnist_rnn", ("main.py --epochs 1 --log-interval 2",), mnist),
    "regression": Program("examples/regression", (f"{_SEEDED} main.py",)),
    "reinforce": Program("examples/reinforcement_learning", ("reinforce.py",)),
    "actor_critic": Program("examples/reinforcement_learning", ("actor_critic.py",)),
    "siamese_network": Program("examples/siamese_network", (
        f"{_SEEDED} main.py --epochs 1 --lr 0.01 --log-interval 2",), mnist),
    "super_resolution": Program("examples/super_resolution", (
        "main.py --upscale_factor 3 --batchSize 4 --testBatchSize 4 --nEpochs 1 --lr 0.001 --threads 0",
        "super_resolve.py --input_image dataset/BSDS300/images/test/0.jpg --model model_epoch_1.pth "
        "--output_filename out.png", f"{_IMAGE} out.png"), bsds),
    "vae": Program("examples/vae", ("main.py --epochs 2 --log-interval 1",), mnist),
    **{
        f"word_language_model {model}": Program("examples/word_language_model", (
            f"{_LANGUAGE} --model {model} --nhead 2 --nlayers 1", "generate.py --words 30",
            f"{_LANGUAGE} --model {model} --nlayers 1 --use-optimizer --lr 0.001"), text)
        for model in ("RNN_TANH", "LSTM", "GRU", "Transformer")
    },
    "nanoGPT": Program("nanoGPT", (
        "data/shakespeare_char/prepare.py", f"{_NANO} --max_iters=12", f"{_NANO} --max_iters=20 --init_from=resume",
    ), shakespeare),
    "nanoGPT, sampling": Program("nanoGPT", (
        "data/shakespeare_char/prepare.py", f"{_NANO} --max_iters=10", "sample.py --out_dir=out-shakespeare-char "
        "--device=cpu --num_samples=1 --max_new_tokens=40",
    ), shakespeare, "letters"),
    "minGPT": Program("minGPT", (
        "projects/adder/adder.py --data.ndigit=1 --trainer.max_iters=60 --trainer.num_workers=0 "
        "--trainer.batch_size=16",
        "projects/chargpt/chargpt.py --trainer.max_iters=20 --trainer.num_workers=0 --trainer.batch_size=8 "
        "--data.block_size=16"), shakespeare),
    **{
        f"makemore {model}": Program("makemore", (
            f"makemore.py --max-steps 101 -n 0 --n-layer 2 --n-embd 32 --n-embd2 32 --type {model}",))
        for model in ("bigram", "bow", "gru", "mlp", "rnn", "transformer")
    },
    "micrograd's tests": Program("micrograd", ("-m pytest -q test",)),
    "torchdiffeq's tests": Program("torchdiffeq", ("tests/run_all.py",), shows="tests"),
    **{
        f"fx/{name}": Program("examples/fx", (f"{name}.py",), shows="numbers" if name == "invert" else "nothing")
        for name in ("custom_tracer", "inline_function", "invert", "module_tracer", "primitive_library",
                     "profiling_tracer", "proxy_based_graph_creation", "replace_op", "subgraph_rewriter_basic_use",
                     "wrap_output_dynamically")
    },
}  # fmt: skip


@dataclass
class Printed:
    """The outcome of a program.

    Attributes:
        numbers: the printed numbers, except times.
        seconds: CPU time.
        error: the last line of the output if it failed.
    """

    numbers: list[float] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


def shown(printed: str, what: str) -> list[float]:
    """The part of a program's output that is compared.

    Args:
        what: as in ``Program.shows``.
    """
    if what == "nothing":
        return [1.0]
    if what == "letters":
        return [float(ord(c)) for c in TIMES.sub(" ", printed)]
    if what == "tests":
        counted = [re.findall(rf"{word}\D?(\d+)", printed) for word in ("Ran", "failures", "errors")]
        return [float(n[-1]) if n else 0.0 for n in counted]
    return [float(n) for n in NUMBER.findall(TIMES.sub(" ", printed))]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(program: Program, source: Path, name: str, compat: bool, limit: float) -> Printed:
    """Runs a program in a new copy of its folder."""
    kind = "compat" if compat else "pytorch"
    folder = OUT / "programs" / kind / name.replace("/", "_").replace(" ", "_") / "work"
    shutil.rmtree(folder.parent, ignore_errors=True)
    shutil.copytree(source / program.folder, folder)
    paths = [str(SITE), *([str(ROOT)] if compat else [])]
    if not compat and any("torchvision" in p.read_text() for p in folder.rglob("*.py")):
        paths = [str(HERE / "reference"), str(HERE / "programs"), *paths]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([*paths, str(folder)]),
        "MPLBACKEND": "Agg",
        "SDL_VIDEODRIVER": "dummy",
    }
    if program.data is not None:
        program.data(folder)
    found, log = Printed(), folder.parent / "log"
    start = _cpu()
    for command in program.commands:
        line = [sys.executable, *(["-m", "compat"] if compat else []), *shlex.split(command)]
        with log.open("a") as written:
            try:
                done = subprocess.run(line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=written,
                                      text=True, timeout=limit, check=False)  # fmt: skip
            except subprocess.TimeoutExpired:
                found.error = f"it took more than {limit:.0f} s"
                break
            written.write(done.stdout)
        found.numbers += shown(
            done.stdout + log.read_text() if program.shows == "tests" else done.stdout, program.shows
        )
        if done.returncode:
            found.error = (log.read_text()[: -len(done.stdout) or None].strip().splitlines() or ["failed"])[-1]
            break
    for state in sorted(folder.glob("*.pickle")):
        found.numbers += pickle.loads(state.read_bytes())
    found.seconds = _cpu() - start
    return found


def same(a: list[float], b: list[float]) -> int:
    """How many numbers agree up to the last printed digits."""
    return sum(abs(x - y) <= 2e-3 * max(abs(x), abs(y)) + 2e-4 for x, y in zip(a, b))


def line(name: str, theirs: Printed, ours: Printed) -> str:
    """A program as a row of the table."""
    remark = f"PyTorch: {theirs.error}" if theirs.error else ours.error
    count = len(theirs.numbers)
    if not remark and len(ours.numbers) != count:
        remark = f"it prints {len(ours.numbers)} numbers"
    remark = re.sub(r"\S*/work/", "", remark).replace("|", "\\|").replace("`", "")[:160]
    return f"| {name} | {same(theirs.numbers, ours.numbers)} of {count} | {remark} |"


def main() -> int:
    """Runs the command line; returns 1 if a number differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a folder of checkouts")
    parser.add_argument("names", nargs="*", help="names of programs; all by default")
    parser.add_argument("--table", type=Path, help="a page whose table is replaced")
    parser.add_argument("--limit", type=float, default=600, help="seconds a program may take")
    options = parser.parse_args()
    install(PACKAGES, SITE)
    lines, failed = ["| program | same numbers | what differs |", "| --- | --- | --- |"], False
    for name, program in PROGRAMS.items():
        if options.names and name not in options.names:
            continue
        theirs, ours = (run(program, options.source, name, compat, options.limit) for compat in (False, True))
        lines.append(line(name, theirs, ours))
        print(lines[-1], f"CPU seconds: PyTorch {theirs.seconds:.0f}, compat {ours.seconds:.0f}", flush=True)
        failed |= bool(ours.error) or same(theirs.numbers, ours.numbers) != len(theirs.numbers)
    if options.table:
        before, _, rest = options.table.read_text().partition(BEGIN)
        shown = "\n".join(lines)
        options.table.write_text(f"{before}{BEGIN}\n{shown}\n{END}{rest.partition(END)[2]}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
