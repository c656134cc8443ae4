// The module of a C twin.
#ifndef FUNCGRAD_TWIN_H
#define FUNCGRAD_TWIN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "the C twins rely on the interpreter's lock"
#endif

// Rows of a module: `bind`, which gets what it works with, and a function of positional arguments.
#define BIND {"bind", bind, METH_O, NULL}
#define FAST(name, function) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}

// Defines `module` with such rows.
#define MODULE(name, ...)                               \
  static PyMethodDef methods[] = {__VA_ARGS__, {NULL}}; \
  static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, name, NULL, -1, methods}

#endif
