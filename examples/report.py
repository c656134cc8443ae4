"""Output of the two digits programs: curves in the terminal and as a picture, and the backward graph.

Works on PyTorch's graph and on compat's alike: it uses only ``name()`` and ``next_functions`` of a node.
"""

from pathlib import Path

import igraph
import matplotlib
import numpy as np
import plotext
from matplotlib.figure import Figure

matplotlib.use("Agg")
OUT = Path("out")


def print_curve(losses, width=100, height=15):
    """The loss over the steps, drawn in the terminal."""
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, height)
    plotext.plot(list(range(1, len(losses) + 1)), list(losses), marker="braille")
    plotext.title("loss")
    plotext.xlabel("step")
    print(plotext.build())


def draw_training(path, losses, accuracies, images, labels, predicted):
    """Loss and accuracy curves, and the first misclassified digits."""
    wrong = np.flatnonzero(np.asarray(labels) != np.asarray(predicted))[:8]
    figure = Figure(figsize=(10, 6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(2, 1))
    left, right = above.subplots(1, 2)
    left.plot(range(1, len(losses) + 1), losses, linewidth=0.8)
    left.set(title="training loss", xlabel="step", yscale="log")
    right.plot(range(1, len(accuracies) + 1), [100 * a for a in accuracies], marker="o", markersize=3)
    right.set(title="test accuracy (%)", xlabel="epoch")
    below.suptitle(
        f"misclassified: {len(np.flatnonzero(np.asarray(labels) != np.asarray(predicted)))} of {len(labels)}"
    )
    for axes, i in zip(np.atleast_1d(below.subplots(1, 8)), [*wrong, *[None] * (8 - len(wrong))], strict=True):
        axes.set_axis_off()
        if i is not None:
            axes.imshow(np.asarray(images[i]).reshape(8, 8), cmap="gray_r")
            axes.set_title(f"{int(labels[i])} taken for {int(predicted[i])}", fontsize=8)
    _save(figure, path)


def backward_graph(root, names=()):
    """The graph below a ``grad_fn``: labels, and edges as pairs of positions, in the order of a walk from the root.

    Args:
        root: the ``grad_fn`` of a tensor.
        names: pairs of a name and a leaf tensor, to label the leaf's ``AccumulateGrad``.
    """
    leaves = {id(tensor): name for name, tensor in names}
    order, edges, stack = {root: 0}, [], [root]
    while stack:
        node = stack.pop()
        for child, _ in node.next_functions:
            if child is None:
                continue
            if child not in order:
                order[child] = len(order)
                stack.append(child)
            edges.append((order[node], order[child]))
    return [_label(node, leaves) for node in order], edges


def _label(node, leaves):
    variable = getattr(node, "variable", None)
    name = node.name().removeprefix("torch::autograd::").removeprefix("struct ")
    if variable is None:
        return name
    return f"{name}\n{leaves.get(id(variable), 'leaf')} {tuple(variable.shape)}"


def print_tree(labels, edges):
    """The graph as an indented tree, each node once with its inputs below it."""
    children = {}
    for parent, child in edges:
        children.setdefault(parent, []).append(child)
    stack, seen = [(0, "", "", "")], set()
    while stack:
        node, lead, branch, below = stack.pop()
        label = labels[node].replace("\n", " ")
        print(f"{lead}{branch}{label}{' (above)' if node in seen and node in children else ''}")
        if node in seen:
            continue
        seen.add(node)
        inner = lead + below
        last = len(children.get(node, ())) - 1
        for i, child in reversed(list(enumerate(children.get(node, ())))):
            # A single input continues the line; only several inputs indent.
            stack.append(
                (
                    child,
                    inner,
                    "" if last == 0 else "└─ " if i == last else "├─ ",
                    "" if last == 0 else "   " if i == last else "│  ",
                )
            )


def draw_graph(path, labels, edges):
    """The graph as an SVG, layer by layer from the loss down to the parameters."""
    layout = igraph.Graph(len(labels), edges, directed=True).layout_sugiyama(maxiter=1000)
    xy = np.array(layout.coords)[: len(labels)] * (2.6, 1)
    figure = Figure(figsize=(np.ptp(xy[:, 0]) * 0.75 + 3, np.ptp(xy[:, 1]) * 0.65 + 1))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    colors = {True: "#dcebfb", False: "#eeeeee"}
    boxes = [
        axes.text(
            x, y, label, ha="center", va="center", fontsize=8,
            bbox={"boxstyle": "round", "fc": colors[label.startswith("AccumulateGrad")], "ec": "#777"},
        )
        for (x, y), label in zip(xy, labels, strict=True)
    ]  # fmt: skip
    for a, b in edges:
        ends = {"patchA": boxes[a].get_bbox_patch(), "patchB": boxes[b].get_bbox_patch()}
        axes.annotate(
            "", xy[b], xy[a], arrowprops={"arrowstyle": "-|>", "color": "#777", "shrinkA": 0, "shrinkB": 2, **ends}
        )
    axes.set_xlim(xy[:, 0].min() - 2, xy[:, 0].max() + 2)
    axes.set_ylim(xy[:, 1].max() + 0.6, xy[:, 1].min() - 0.6)
    _save(figure, path)


def _save(figure, path):
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / path)
    print(f"wrote {OUT / path}")
