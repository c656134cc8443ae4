// What the C twins know of the nodes that operations make.
#ifndef COMPAT_NODE_H
#define COMPAT_NODE_H

#include "../tensor/tensor.h"

static PyObject *Node, *HookStack, *next_sequence, *leaf_edge, *no_edge, *n_used;
static Py_ssize_t o_sequence, o_hooks, o_functions;

// Whether hooks of saved tensors are in force, or somebody sees nodes being made; -1 for an error.
static int hooks_are_used(void) {
  PyObject *used = PyObject_GetAttr(HookStack, n_used);
  if (used == NULL) return -1;
  int found = PyObject_IsTrue(used);
  Py_DECREF(used);
  return found;
}

// The edge to what a tensor comes from.
static PyObject *edge_to(PyObject *t) {
  PyObject *node = of_tensor(t, t_node, n_node);
  if (node == NULL) return NULL;
  if (node == Py_None) {
    Py_DECREF(node);
    return PyObject_CallOneArg(leaf_edge, t);
  }
  PyObject *nr = of_tensor(t, t_nr, n_nr), *edge = nr == NULL ? NULL : PyTuple_Pack(2, node, nr);
  Py_DECREF(node);
  Py_XDECREF(nr);
  return edge;
}

// A node of a class with its number and with room for so many edges.
static PyObject *node_of(PyObject *kind, Py_ssize_t edges) {
  PyObject *node = instance(kind);
  if (node == NULL) return NULL;
  PyObject *sequence = PyObject_CallNoArgs(next_sequence), *functions = sequence == NULL ? NULL : PyTuple_New(edges);
  if (functions == NULL) {
    Py_XDECREF(sequence);
    Py_DECREF(node);
    return NULL;
  }
  slot_set(node, o_sequence, sequence);
  slot_set(node, o_hooks, Py_NewRef(Py_None));
  slot_set(node, o_functions, functions);
  return node;
}

// Takes Node and what nodes are made with from a dictionary of names.
static int bind_node(PyObject *given) {
  const char *const names[] = {"Node", "HookStack", "next_sequence", "leaf_edge", "NO_EDGE", NULL};
  PyObject **places[] = {&Node, &HookStack, &next_sequence, &leaf_edge, &no_edge};
  if (bind_objects(given, names, places) < 0) return -1;
  const Slot slots[] = {{&o_sequence, &Node, "_sequence"}, {&o_hooks, &Node, "_hooks"}, {&o_functions, &Node, "_edges"}};
  return find_slots(slots, sizeof(slots) / sizeof(*slots));
}

static int intern_node_names(void) {
  const Name names[] = {{&n_used, "used"}};
  return intern_names(names, 1);
}

#endif
