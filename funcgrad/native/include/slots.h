// What the C twins of Python functions share: attributes in slots, places of objects, recorded operations.
#ifndef FUNCGRAD_SLOTS_H
#define FUNCGRAD_SLOTS_H

#include "twin.h"

#include <structmember.h>

// ---------------------------------------------------------------- attributes in slots

// Where instances of a class keep the attribute that a name in its __slots__ describes; -1 with an error set.
static Py_ssize_t slot_offset(PyObject *type, const char *name) {
  PyObject *found = PyObject_GetAttrString(type, name);
  if (found == NULL) return -1;
  Py_ssize_t offset = -1;
  if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
    PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
    if (member->type == T_OBJECT_EX) offset = member->offset;
  }
  Py_DECREF(found);
  if (offset < 0) PyErr_Format(PyExc_TypeError, "%R keeps no '%s' in a slot", type, name);
  return offset;
}

// A borrowed reference; NULL, with no error set, where the slot is empty.
static inline PyObject *slot_get(PyObject *object, Py_ssize_t offset) {
  return *(PyObject **)((char *)object + offset);
}

// Takes over a reference to the value.
static inline void slot_set(PyObject *object, Py_ssize_t offset, PyObject *value) {
  PyObject **place = (PyObject **)((char *)object + offset);
  PyObject *before = *place;
  *place = value;
  Py_XDECREF(before);
}

// object.__new__(type): an instance with all its slots empty.
static inline PyObject *instance(PyObject *type) { return ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0); }

// ---------------------------------------------------------------- numbers by object

typedef struct {
  const void *key;
  Py_ssize_t value;
} Place;

// A hash table from objects' identities to numbers. The objects must outlive it.
typedef struct {
  Place *entries;
  size_t mask, used;
} Places;

static int places_begin(Places *places, size_t expected) {
  size_t size = 64;
  while (size < 2 * expected) size *= 2;
  places->entries = PyMem_Calloc(size, sizeof(Place));
  places->mask = size - 1;
  places->used = 0;
  if (places->entries == NULL) PyErr_NoMemory();
  return places->entries == NULL ? -1 : 0;
}

static void places_end(Places *places) { PyMem_Free(places->entries); }

static inline Place *places_find(const Places *places, const void *key) {
  size_t i = (size_t)(((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20) & places->mask;
  while (places->entries[i].key != NULL && places->entries[i].key != key) i = (i + 1) & places->mask;
  return &places->entries[i];
}

static int places_set(Places *places, const void *key, Py_ssize_t value) {
  if (2 * (places->used + 1) > places->mask) {
    Places larger;
    if (places_begin(&larger, 2 * (places->mask + 1)) < 0) return -1;
    for (size_t i = 0; i <= places->mask; i++)
      if (places->entries[i].key != NULL) *places_find(&larger, places->entries[i].key) = places->entries[i];
    larger.used = places->used;
    places_end(places);
    *places = larger;
  }
  Place *place = places_find(places, key);
  if (place->key == NULL) places->used++;
  place->key = key;
  place->value = value;
  return 0;
}

// ---------------------------------------------------------------- what a module is given

// Sets each of `names` in order from a dictionary; the references are kept for the life of the process.
static int bind_objects(PyObject *given, const char *const *names, PyObject ***places) {
  for (; *names != NULL; names++, places++) {
    PyObject *found = PyDict_GetItemString(given, *names);
    if (found == NULL) {
      PyErr_Format(PyExc_KeyError, "%s", *names);
      return -1;
    }
    Py_INCREF(found);
    Py_XSETREF(**places, found);
  }
  return 0;
}

#endif
