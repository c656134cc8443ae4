// What the C twins know of tensors and of their storages.
#ifndef COMPAT_TENSOR_H
#define COMPAT_TENSOR_H

#include "slots.h"

static PyObject *Tensor, *UntypedStorage, *zero;
static PyObject *n_storage, *n_layout, *n_offset, *n_counter, *n_rg, *n_node, *n_nr, *n_view, *n_buffer, *n_version;
static Py_ssize_t t_storage, t_layout, t_offset, t_counter, t_rg, t_node, t_nr, t_view, t_meta;
static Py_ssize_t s_buffer, s_base, s_version, s_born;

// A new reference to an attribute of a tensor; of a subclass it may be in another place.
static inline PyObject *of_tensor(PyObject *t, Py_ssize_t offset, PyObject *name) {
  if ((PyObject *)Py_TYPE(t) == Tensor) {
    PyObject *found = slot_get(t, offset);
    if (found != NULL) return Py_NewRef(found);
  }
  return PyObject_GetAttr(t, name);
}

// A new reference to the buffer of a storage; some kinds of storages make it when they are asked.
static inline PyObject *buffer_of(PyObject *storage) {
  if ((PyObject *)Py_TYPE(storage) == UntypedStorage) {
    PyObject *found = slot_get(storage, s_buffer);
    if (found != NULL) return Py_NewRef(found);
  }
  return PyObject_GetAttr(storage, n_buffer);
}

// A new reference to the version of what counts in-place operations: a storage mostly.
static inline PyObject *version_of(PyObject *counter) {
  if ((PyObject *)Py_TYPE(counter) == UntypedStorage) {
    PyObject *found = slot_get(counter, s_version);
    if (found != NULL) return Py_NewRef(found);
  }
  return PyObject_GetAttr(counter, n_version);
}

// A tensor over a storage, without a gradient and without a node. Borrows its arguments.
static inline PyObject *tensor_over(PyObject *storage, PyObject *layout, PyObject *offset, PyObject *counter,
                                    PyObject *view) {
  PyObject *t = instance(Tensor);
  if (t == NULL) return NULL;
  slot_set(t, t_storage, Py_NewRef(storage));
  slot_set(t, t_layout, Py_NewRef(layout));
  slot_set(t, t_offset, Py_NewRef(offset));
  slot_set(t, t_counter, Py_NewRef(counter));
  slot_set(t, t_rg, Py_NewRef(Py_False));
  slot_set(t, t_node, Py_NewRef(Py_None));
  slot_set(t, t_nr, Py_NewRef(zero));
  slot_set(t, t_view, Py_NewRef(view));
  slot_set(t, t_meta, Py_NewRef(Py_None));
  return t;
}

// Says that a tensor is a result of a node.
static inline int link_to(PyObject *t, PyObject *node, Py_ssize_t nr) {
  PyObject *number = PyLong_FromSsize_t(nr);
  if (number == NULL) return -1;
  slot_set(t, t_rg, Py_NewRef(Py_True));
  slot_set(t, t_node, Py_NewRef(node));
  slot_set(t, t_nr, number);
  return 0;
}

typedef struct {
  Py_ssize_t *offset;
  PyObject **type;
  const char *name;
} Slot;

static int find_slots(const Slot *slots, size_t count) {
  for (size_t i = 0; i < count; i++)
    if ((*slots[i].offset = slot_offset(*slots[i].type, slots[i].name)) < 0) return -1;
  return 0;
}

// Takes Tensor and UntypedStorage from a dictionary of names.
static int bind_tensor(PyObject *given) {
  const char *const names[] = {"Tensor", "UntypedStorage", NULL};
  PyObject **places[] = {&Tensor, &UntypedStorage};
  if (bind_objects(given, names, places) < 0) return -1;
  const Slot slots[] = {
      {&t_storage, &Tensor, "_storage_"}, {&t_layout, &Tensor, "_layout_"}, {&t_offset, &Tensor, "_offset_"},
      {&t_counter, &Tensor, "_counter_"}, {&t_rg, &Tensor, "_rg_"}, {&t_node, &Tensor, "_node_"},
      {&t_nr, &Tensor, "_nr_"}, {&t_view, &Tensor, "_view_"}, {&t_meta, &Tensor, "_autograd_state_"},
      {&s_buffer, &UntypedStorage, "buffer"}, {&s_base, &UntypedStorage, "base"},
      {&s_version, &UntypedStorage, "version"}, {&s_born, &UntypedStorage, "born"},
  };
  return find_slots(slots, sizeof(slots) / sizeof(*slots));
}

typedef struct {
  PyObject **place;
  const char *text;
} Name;

static int intern_names(const Name *names, size_t count) {
  for (size_t i = 0; i < count; i++)
    if ((*names[i].place = PyUnicode_InternFromString(names[i].text)) == NULL) return -1;
  return 0;
}

static int intern_tensor_names(void) {
  const Name names[] = {{&n_storage, "_storage_"}, {&n_layout, "_layout_"}, {&n_offset, "_offset_"},
                        {&n_counter, "_counter_"}, {&n_rg, "_rg_"}, {&n_node, "_node_"}, {&n_nr, "_nr_"},
                        {&n_view, "_view_"}, {&n_buffer, "buffer"}, {&n_version, "version"}};
  zero = PyLong_FromLong(0);
  return intern_names(names, sizeof(names) / sizeof(*names));
}

#endif
