# packages: torch-geometric
"""Layers of PyG on a small graph, trained for some steps, and its operations on graphs."""

import torch
import torch_geometric.nn as pyg
from harness import report, train
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader, NeighborLoader  # noqa: F401 (it can be imported)
from torch_geometric.utils import add_self_loops, coalesce, degree, softmax, to_dense_adj, to_undirected

torch.manual_seed(0)
edges = to_undirected(torch.randint(0, 12, (2, 30)))
x, labels = torch.randn(12, 5), torch.arange(12) % 3
LAYERS = {
    "GCN": pyg.GCNConv, "GAT": lambda a, b: pyg.GATConv(a, b, heads=2, concat=False),
    "GATv2": pyg.GATv2Conv, "SAGE": pyg.SAGEConv,
    "GIN": lambda a, b: pyg.GINConv(torch.nn.Linear(a, b)), "Cheb": lambda a, b: pyg.ChebConv(a, b, 2),
    "Transformer": pyg.TransformerConv, "Edge": lambda a, b: pyg.EdgeConv(torch.nn.Linear(2 * a, b)),
    "TAG": pyg.TAGConv, "ARMA": pyg.ARMAConv, "SG": pyg.SGConv,
}  # fmt: skip
for name, make in LAYERS.items():
    torch.manual_seed(1)
    net = torch.nn.ModuleList([make(5, 8), make(8, 3)])
    loss = lambda: torch.nn.functional.cross_entropy(net[1](net[0](x, edges).relu(), edges), labels)
    report(name, train(net, loss))
graph = Data(x=x, edge_index=edges, y=labels)
batch = Batch.from_data_list([graph, graph])
report("batch", [batch.x.sum(), batch.edge_index.float(), batch.batch.float()])
pooled = (pyg.global_mean_pool, pyg.global_max_pool, pyg.global_add_pool)
report("pools", [pool(batch.x, batch.batch) for pool in pooled])
report("utilities", [
    degree(edges[0], 12), softmax(torch.arange(float(edges.shape[1])), edges[0]), to_dense_adj(edges)[0],
    add_self_loops(edges)[0].float(), coalesce(edges).float(),
])  # fmt: skip
report("loader", [b.x.sum() for b in DataLoader([graph] * 4, batch_size=2)])
