// The C twin of Walk (graph_cache.py): the same nodes in the same order, an equal key, the same buffers and leaves.
#include "node.h"

static PyObject *AccumulateGrad, *SavedResult, *Layout, *Autograd, *overrides_operators, *modified;
static PyObject *n_edges, *n_sequence, *n_swept, *n_saves, *n_saved, *n_plan, *n_base;
static Py_ssize_t l_base, l_whole, l_size, k_storage, k_layout, k_counter, k_version;
static Py_ssize_t a_variable, a_size, m_grad, m_hooks, m_post, m_dtypes;

// What a class of nodes says of all of them, and in which slots it has what is asked of each: -1 for none.
typedef struct {
  int leaf, swept, saves;
  Py_ssize_t plan, saved;
} Kind;

enum { KINDS = 64 };  // graphs with nodes of more classes go through the engine

typedef struct {
  long long sequence;
  Py_ssize_t place;
  PyObject *node;
} Entry;

typedef struct {
  PyObject **key;
  Py_ssize_t length, room;
  PyObject *nodes, *buffers, *leaves, *grads;
  Places index, places, classes;
  Kind kinds[KINDS];
  Py_ssize_t kind_count;
} Walk;

// The outcome of a step: the engine has to do it, or there is an error.
enum { DONE = 0, ENGINE = 1, ERROR = -1 };

// ---------------------------------------------------------------- the key

// Takes over the reference.
static int put(Walk *w, PyObject *item) {
  if (item == NULL) return ERROR;
  if (w->length == w->room) {
    Py_ssize_t room = w->room ? 2 * w->room : 256;
    PyObject **larger = PyMem_Realloc(w->key, room * sizeof(PyObject *));
    if (larger == NULL) {
      Py_DECREF(item);
      PyErr_NoMemory();
      return ERROR;
    }
    w->key = larger;
    w->room = room;
  }
  w->key[w->length++] = item;
  return DONE;
}

static int put_number(Walk *w, Py_ssize_t number) { return put(w, PyLong_FromSsize_t(number)); }

// Which buffer it is: each counts once.
static int put_buffer(Walk *w, PyObject *buffer) {
  Place *known = places_find(&w->places, buffer);
  if (known->key != NULL) return put_number(w, known->value);
  Py_ssize_t place = PyList_GET_SIZE(w->buffers);
  if (PyList_Append(w->buffers, buffer) < 0 || places_set(&w->places, buffer, place) < 0) return ERROR;
  return put_number(w, place);
}

static int put_storage(Walk *w, PyObject *storage) {
  PyObject *buffer = buffer_of(storage);
  if (buffer == NULL) return ERROR;
  int failed = put_buffer(w, buffer);
  Py_DECREF(buffer);
  return failed;
}

static int put_tensor(Walk *w, PyObject *t) {
  PyObject *layout = of_tensor(t, t_layout, n_layout), *storage = of_tensor(t, t_storage, n_storage);
  int status = layout == NULL || storage == NULL ? ERROR : DONE;
  int whole = status == DONE && Py_IS_TYPE(layout, (PyTypeObject *)Layout) ? slot_get(layout, l_whole) == Py_True : 0;
  if (status == DONE) status = put(w, Py_NewRef(layout));
  if (status == DONE) status = put_storage(w, storage);
  if (status == DONE && !whole) status = put(w, of_tensor(t, t_offset, n_offset));
  Py_XDECREF(layout);
  Py_XDECREF(storage);
  return status;
}

// ---------------------------------------------------------------- saved values

// 1 if the version is the expected one, 0 if not, -1 for an error.
static int unchanged(PyObject *counter, PyObject *expected) {
  PyObject *version = version_of(counter);
  if (version == NULL) return -1;
  int same = version == expected ? 1 : PyObject_RichCompareBool(version, expected, Py_EQ);
  Py_DECREF(version);
  return same;
}

static int put_memory(Walk *w, PyObject *storage, PyObject *layout) {
  int status = put(w, Py_NewRef(layout));
  return status == DONE ? put_storage(w, storage) : status;
}

static int put_saved_operand(Walk *w, PyObject *entry) {
  PyObject *t = PyTuple_GET_ITEM(entry, 0), *expected = PyTuple_GET_ITEM(entry, 1);
  PyObject *counter = of_tensor(t, t_counter, n_counter);
  if (counter == NULL) return ERROR;
  int same = unchanged(counter, expected);
  Py_DECREF(counter);
  if (same < 0) return ERROR;
  if (!same) {
    PyObject *error = PyObject_CallFunctionObjArgs(modified, t, expected, NULL);
    if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return ERROR;
  }
  PyObject *storage = of_tensor(t, t_storage, n_storage), *layout = of_tensor(t, t_layout, n_layout);
  PyObject *base = NULL;
  int status = storage == NULL || layout == NULL ? ERROR : DONE;
  if (status == DONE && !Py_IS_TYPE(layout, (PyTypeObject *)Layout)) status = ENGINE;
  if (status == DONE && (base = PyObject_GetAttr(storage, n_base)) == NULL) status = ERROR;
  if (status == DONE && base != slot_get(layout, l_base)) status = ENGINE;
  if (status == DONE) status = put_memory(w, storage, layout);
  Py_XDECREF(storage);
  Py_XDECREF(layout);
  Py_XDECREF(base);
  return status;
}

static int put_saved(Walk *w, PyObject *saved) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(saved); i++) {
    PyObject *entry = PyTuple_GET_ITEM(saved, i);
    int status;
    if (PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2) {
      status = put_saved_operand(w, entry);
    } else if ((PyObject *)Py_TYPE(entry) == SavedResult) {
      int same = unchanged(slot_get(entry, k_counter), slot_get(entry, k_version));
      if (same < 1) return same < 0 ? ERROR : ENGINE;
      status = put_memory(w, slot_get(entry, k_storage), slot_get(entry, k_layout));
    } else if (entry == Py_None) {
      status = put(w, Py_NewRef(Py_None));
    } else {
      return ENGINE;
    }
    if (status != DONE) return status;
  }
  return DONE;
}

// ---------------------------------------------------------------- leaves

static int is_true(PyObject *object) { return object == NULL || object == Py_None ? 0 : PyObject_IsTrue(object); }

static int put_leaf_gradient(Walk *w, PyObject *grad) {
  PyObject *overrides = PyObject_CallOneArg(overrides_operators, grad);
  if (overrides == NULL) return ERROR;
  int status = PyObject_IsTrue(overrides) || slot_get(grad, t_view) != Py_None || slot_get(grad, t_node) != Py_None;
  Py_DECREF(overrides);
  if (status) return ENGINE;
  PyObject *storage = of_tensor(grad, t_storage, n_storage), *buffer = NULL;
  if (storage == NULL) return ERROR;
  if ((PyObject *)Py_TYPE(storage) == UntypedStorage) buffer = slot_get(storage, s_buffer);
  status = buffer == NULL ? ENGINE : PyList_Append(w->grads, buffer) < 0 ? ERROR : DONE;
  Py_DECREF(storage);
  return status == DONE ? put_tensor(w, grad) : status;
}

// Whether a leaf expects other gradients than operations give: of the size that it had, or of a dtype chosen.
static int is_particular(PyObject *node, PyObject *layout, PyObject *meta) {
  if (meta != Py_None && slot_get(meta, m_dtypes) != Py_None) return 1;
  PyObject *size = slot_get(node, a_size), *now = slot_get(layout, l_size);
  return size == now ? 0 : PyObject_RichCompareBool(size, now, Py_NE);
}

static int put_leaf(Walk *w, PyObject *node) {
  PyObject *variable = slot_get(node, a_variable), *meta = slot_get(variable, t_meta);
  PyObject *layout = of_tensor(variable, t_layout, n_layout);
  if (layout == NULL) return ERROR;
  int status = Py_IS_TYPE(layout, (PyTypeObject *)Layout) ? put(w, Py_NewRef(layout)) : ENGINE;
  Py_DECREF(layout);
  if (status != DONE) return status;
  if (PyList_Append(w->leaves, node) < 0) return ERROR;
  PyObject *grad = meta == Py_None ? Py_None : slot_get(meta, m_grad);
  if (grad == Py_None && PyList_Append(w->grads, grad) < 0) return ERROR;
  Py_INCREF(grad);  // another thread may replace it
  status = grad == Py_None ? put(w, Py_NewRef(Py_None)) : put_leaf_gradient(w, grad);
  Py_DECREF(grad);
  if (status != DONE) return status;
  int bars[4] = {slot_get(variable, t_rg) == Py_False || slot_get(variable, t_node) != Py_None,
                 is_particular(node, layout, meta), 0, 0};
  if (meta != Py_None) {
    bars[2] = is_true(slot_get(meta, m_hooks));
    bars[3] = is_true(slot_get(meta, m_post));
  }
  for (int i = 0; i < 4; i++)
    if (bars[i]) return bars[i] < 0 ? ERROR : ENGINE;
  return DONE;
}

// ---------------------------------------------------------------- nodes

static int truth(PyObject *object, PyObject *name) {
  PyObject *found = PyObject_GetAttr(object, name);
  if (found == NULL) return -1;
  int value = PyObject_IsTrue(found);
  Py_DECREF(found);
  return value;
}

// In which slot instances of a class have an attribute; -1 where it is no slot.
static Py_ssize_t slot_if_any(PyObject *type, const char *name) {
  Py_ssize_t offset = slot_offset(type, name);
  if (offset < 0) PyErr_Clear();
  return offset;
}

// What the node's class says.
static int kind_of(Walk *w, PyObject *node, const Kind **kind) {
  PyObject *type = (PyObject *)Py_TYPE(node);
  Place *known = places_find(&w->classes, type);
  Py_ssize_t place = known->value;
  if (known->key == NULL) {
    if ((place = w->kind_count) == KINDS) return ENGINE;
    Kind *made = &w->kinds[w->kind_count++];
    made->leaf = type == AccumulateGrad;
    if ((made->swept = truth(node, n_swept)) < 0 || (made->saves = truth(node, n_saves)) < 0) return ERROR;
    made->plan = slot_if_any(type, "plan");
    made->saved = slot_if_any(type, "saved");
    if (places_set(&w->classes, type, place) < 0) return ERROR;
  }
  *kind = &w->kinds[place];
  return DONE;
}

static int put_edges(Walk *w, PyObject *edges) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges); i++) {
    PyObject *edge = PyTuple_GET_ITEM(edges, i), *following = PyTuple_GET_ITEM(edge, 0);
    int status = put_number(w, following == Py_None ? -1 : places_find(&w->index, following)->value);
    if (status == DONE) status = put(w, Py_NewRef(PyTuple_GET_ITEM(edge, 1)));
    if (status != DONE) return status;
  }
  return DONE;
}

// A new reference to an attribute of a node, in a slot if its class has it there.
static inline PyObject *of_node(PyObject *node, Py_ssize_t offset, PyObject *name) {
  PyObject *found = offset < 0 ? NULL : slot_get(node, offset);
  return found != NULL ? Py_NewRef(found) : PyObject_GetAttr(node, name);
}

static int put_node(Walk *w, PyObject *node) {
  const Kind *kind;
  int status = kind_of(w, node, &kind);
  if (status != DONE) return status;
  if (slot_get(node, o_hooks) != Py_None) return ENGINE;
  if (kind->leaf) return put_leaf(w, node);
  if (!kind->swept) return ENGINE;
  status = put(w, of_node(node, kind->plan, n_plan));
  if (status == DONE) status = put_edges(w, slot_get(node, o_functions));
  if (status != DONE || !kind->saves) return status;
  PyObject *saved = of_node(node, kind->saved, n_saved);
  if (saved == NULL) return ERROR;
  status = PyTuple_Check(saved) ? put_saved(w, saved) : ENGINE;
  Py_DECREF(saved);
  return status;
}

// Adds the nodes behind one to those found.
static int follow(PyObject *found, Places *seen, PyObject *node) {
  PyObject *edges = PyObject_GetAttr(node, n_edges);
  if (edges == NULL) return -1;
  int failed = !PyTuple_Check(edges);
  for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(edges); i++) {
    PyObject *edge = PyTuple_GET_ITEM(edges, i);
    failed = !PyTuple_Check(edge) || PyTuple_GET_SIZE(edge) != 2;
    PyObject *following = failed ? Py_None : PyTuple_GET_ITEM(edge, 0);
    if (following == Py_None || places_find(seen, following)->key != NULL) continue;
    if (places_set(seen, following, 0) < 0 || PyList_Append(found, following) < 0) failed = 1;
  }
  Py_DECREF(edges);
  if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "edges are tuples of a node and a number");
  return failed ? -1 : 0;
}

static int later_first(const void *one, const void *other) {
  const Entry *a = one, *b = other;
  if (a->sequence != b->sequence) return a->sequence > b->sequence ? -1 : 1;
  return a->place < b->place ? -1 : 1;  // a stable order: leaves all have the same number
}

// The nodes in a list, latest first: ENGINE where a number is not a small whole one. They are kept by the list, so
// `entries` only borrows.
static int sort(PyObject *nodes) {
  Py_ssize_t count = PyList_GET_SIZE(nodes);
  Entry *entries = PyMem_Calloc(count + 1, sizeof(Entry));
  if (entries == NULL) {
    PyErr_NoMemory();
    return ERROR;
  }
  int status = DONE;
  for (Py_ssize_t i = 0; status == DONE && i < count; i++) {
    PyObject *node = PyList_GET_ITEM(nodes, i), *number = PyObject_GetAttr(node, n_sequence);
    int overflow = 0;
    if (number == NULL) status = ERROR;
    else if (!PyLong_CheckExact(number)) status = ENGINE;
    else entries[i] = (Entry){PyLong_AsLongLongAndOverflow(number, &overflow), i, node};
    if (overflow) status = ENGINE;
    Py_XDECREF(number);
  }
  if (status == DONE) {
    qsort(entries, count, sizeof(Entry), later_first);
    for (Py_ssize_t i = 0; i < count; i++) PyList_SET_ITEM(nodes, i, entries[i].node);
  }
  PyMem_Free(entries);
  return status;
}

static PyObject *reachable(PyObject *roots) {
  PyObject *found = PyList_New(0);
  Places seen;
  if (found == NULL || places_begin(&seen, 256) < 0) {
    Py_XDECREF(found);
    return NULL;
  }
  int failed = 0;
  for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(roots); i++) {
    PyObject *root = PyTuple_GET_ITEM(PySequence_Fast_GET_ITEM(roots, i), 0);
    if (root == Py_None) continue;
    failed = PyList_Append(found, root) < 0 || places_set(&seen, root, 0) < 0;
  }
  for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(found); i++)
    failed = follow(found, &seen, PyList_GET_ITEM(found, i)) < 0;
  places_end(&seen);
  int status = failed ? ERROR : sort(found);
  if (status != DONE) Py_CLEAR(found);
  return status == ENGINE ? Py_NewRef(Py_None) : found;
}

// ---------------------------------------------------------------- the walk

static int put_roots(Walk *w, PyObject *roots, PyObject *grads) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(roots); i++) {
    PyObject *edge = PySequence_Fast_GET_ITEM(roots, i), *node = PyTuple_GET_ITEM(edge, 0);
    int status = put_number(w, node == Py_None ? -1 : places_find(&w->index, node)->value);
    if (status == DONE) status = put(w, Py_NewRef(PyTuple_GET_ITEM(edge, 1)));
    if (status == DONE) status = put_tensor(w, PySequence_Fast_GET_ITEM(grads, i));
    if (status != DONE) return status;
  }
  return DONE;
}

static int structure(Walk *w, PyObject *roots, PyObject *grads) {
  Py_ssize_t count = PyList_GET_SIZE(w->nodes);
  for (Py_ssize_t i = 0; i < count; i++)
    if (places_set(&w->index, PyList_GET_ITEM(w->nodes, i), i) < 0) return ERROR;
  int status = put_roots(w, roots, grads);
  for (Py_ssize_t i = 0; status == DONE && i < count; i++) status = put_node(w, PyList_GET_ITEM(w->nodes, i));
  return status;
}

static PyObject *key_of(Walk *w) {
  PyObject *key = PyTuple_New(w->length);
  for (Py_ssize_t i = 0; key != NULL && i < w->length; i++) PyTuple_SET_ITEM(key, i, Py_NewRef(w->key[i]));
  return key;
}

// structure(nodes, roots, grads, buffers, leaves, leaf_grads): the key, None where the engine has to run; fills the lists.
static PyObject *structure_of(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (count != 6) return PyErr_Format(PyExc_TypeError, "structure() takes 6 arguments, not %zd", count);
  PyObject *roots = PySequence_Fast(args[1], "roots are a sequence"), *found = NULL;
  PyObject *grads = roots == NULL ? NULL : PySequence_Fast(args[2], "gradients are a sequence");
  Walk w = {.nodes = args[0], .buffers = args[3], .leaves = args[4], .grads = args[5]};
  size_t expected = (size_t)PyList_GET_SIZE(w.nodes);
  if (grads != NULL && places_begin(&w.index, expected) == 0 && places_begin(&w.places, expected) == 0 &&
      places_begin(&w.classes, KINDS) == 0) {
    int status = structure(&w, roots, grads);
    found = status == DONE ? key_of(&w) : status == ENGINE ? Py_NewRef(Py_None) : NULL;
  }
  for (Py_ssize_t i = 0; i < w.length; i++) Py_DECREF(w.key[i]);
  PyMem_Free(w.key);
  places_end(&w.index);
  places_end(&w.places);
  places_end(&w.classes);
  Py_XDECREF(roots);
  Py_XDECREF(grads);
  return found;
}

// reachable(roots): the nodes behind some edges, latest first; None where their numbers are not whole ones.
static PyObject *reachable_from(PyObject *module, PyObject *given) {
  PyObject *roots = PySequence_Fast(given, "roots are a sequence");
  PyObject *found = roots == NULL ? NULL : reachable(roots);
  Py_XDECREF(roots);
  return found;
}

// ---------------------------------------------------------------- the module

// bind(names): what the walk works with, by name.
static PyObject *bind(PyObject *module, PyObject *given) {
  const char *const names[] = {"AccumulateGrad", "SavedResult", "Layout", "Autograd", "overrides_operators", "modified", NULL};
  PyObject **places[] = {&AccumulateGrad, &SavedResult, &Layout, &Autograd, &overrides_operators, &modified};
  if (bind_tensor(given) < 0 || bind_node(given) < 0 || bind_objects(given, names, places) < 0) return NULL;
  const Slot slots[] = {
      {&l_base, &Layout, "base"}, {&l_whole, &Layout, "whole"}, {&l_size, &Layout, "size"},
      {&k_storage, &SavedResult, "storage"}, {&k_layout, &SavedResult, "layout"},
      {&k_counter, &SavedResult, "counter"}, {&k_version, &SavedResult, "version"},
      {&a_variable, &AccumulateGrad, "variable"}, {&a_size, &AccumulateGrad, "size"}, {&m_grad, &Autograd, "grad"},
      {&m_hooks, &Autograd, "hooks"}, {&m_post, &Autograd, "post_accumulate"}, {&m_dtypes, &Autograd, "grad_dtypes"},
  };
  if (find_slots(slots, sizeof(slots) / sizeof(*slots)) < 0) return NULL;
  Py_RETURN_NONE;
}

MODULE("graph_walk", BIND, {"reachable", reachable_from, METH_O, NULL}, FAST("structure", structure_of));

PyMODINIT_FUNC PyInit_graph_walk(void) {
  const Name names[] = {{&n_edges, "_edges"}, {&n_sequence, "_sequence"}, {&n_swept, "swept"}, {&n_saves, "saves"},
                        {&n_saved, "saved"}, {&n_plan, "plan"}, {&n_base, "base"}};
  if (intern_tensor_names() < 0 || intern_node_names() < 0 || intern_names(names, 7) < 0) return NULL;
  return PyModule_Create(&module);
}
