// The C twin of ViewPlan.run (view.py), for views whose elements are the operand's own.
//
// What is rare goes to the Python function: hooks that see nodes being made, tensors of inference mode, views of views
// that take more than a look at other places.
#include "../autograd/node.h"

static PyObject *View, *SHARED, *ViewNode, *empty_text, *no_steps;
static Py_ssize_t v_base, v_version, v_origin, v_steps, o_plan;

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *plan, *kind, *origin, *outputs, *written;
  int several;
} ViewRunner;

// ---------------------------------------------------------------- one call

// What is asked of the operand, as new references.
typedef struct {
  PyObject *view, *counter, *storage, *base, *version, *origin;
} Operand;

static void operand_end(Operand *o) {
  Py_XDECREF(o->view);
  Py_XDECREF(o->counter);
  Py_XDECREF(o->storage);
  Py_XDECREF(o->base);
  Py_XDECREF(o->version);
  Py_XDECREF(o->origin);
}

// 1 where the Python function has to do it, -1 for an error.
static int operand_of(ViewRunner *r, PyObject *t, Operand *o) {
  if ((o->view = of_tensor(t, t_view, n_view)) == NULL || (o->counter = of_tensor(t, t_counter, n_counter)) == NULL)
    return -1;
  int plain = o->view == Py_None;
  if (o->counter == Py_None || !(plain || (PyObject *)Py_TYPE(o->view) == View)) return 1;
  if (!plain && PyObject_IsTrue(slot_get(o->view, v_steps)) != 0) return 1;
  int used = r->kind == Py_None ? 0 : hooks_are_used();
  if (used != 0) return used;
  PyObject *base = plain ? t : slot_get(o->view, v_base);
  o->base = Py_NewRef(base == Py_None ? t : base);
  o->version = version_of(o->counter);
  o->storage = of_tensor(t, t_storage, n_storage);
  o->origin = Py_NewRef(r->origin != empty_text || plain ? r->origin : slot_get(o->view, v_origin));
  return o->version == NULL || o->storage == NULL ? -1 : 0;
}

// Says that the memory of a tensor is shared now.
static int mark_shared(PyObject *t) {
  if ((PyObject *)Py_TYPE(t) != Tensor) return PyObject_SetAttr(t, n_view, SHARED);
  slot_set(t, t_view, Py_NewRef(SHARED));
  return 0;
}

static PyObject *view_state(const Operand *o) {
  PyObject *view = instance(View);
  if (view == NULL) return NULL;
  slot_set(view, v_base, Py_NewRef(o->base));
  slot_set(view, v_version, Py_NewRef(o->version));
  slot_set(view, v_origin, Py_NewRef(o->origin));
  slot_set(view, v_steps, Py_NewRef(no_steps));
  return view;
}

static PyObject *new_node(ViewRunner *r, PyObject *t) {
  PyObject *node = node_of(r->kind, 1), *rg = node == NULL ? NULL : of_tensor(t, t_rg, n_rg), *edge = NULL;
  if (rg != NULL) {
    int differentiable = PyObject_IsTrue(rg);
    if (differentiable >= 0) edge = differentiable ? edge_to(t) : Py_NewRef(no_edge);
    Py_DECREF(rg);
  }
  if (edge == NULL) {
    Py_XDECREF(node);
    return NULL;
  }
  slot_set(node, o_plan, Py_NewRef(r->plan));
  PyTuple_SET_ITEM(slot_get(node, o_functions), 0, edge);
  return node;
}

static PyObject *result(const Operand *o, PyObject *output, PyObject *node, Py_ssize_t nr) {
  PyObject *view = view_state(o);
  if (view == NULL) return NULL;
  PyObject *t = tensor_over(o->storage, PyTuple_GET_ITEM(output, 0), PyTuple_GET_ITEM(output, 1), o->counter, view);
  Py_DECREF(view);
  if (t != NULL && node != NULL && link_to(t, node, nr) < 0) Py_CLEAR(t);
  return t;
}

static PyObject *run(ViewRunner *r, PyObject *t, const Operand *o) {
  if (o->view == Py_None && mark_shared(t) < 0) return NULL;
  PyObject *node = NULL, *found = NULL;
  if (r->kind != Py_None && (node = new_node(r, t)) == NULL) return NULL;
  if (!r->several) {
    found = result(o, PyTuple_GET_ITEM(r->outputs, 0), node, 0);
  } else if ((found = PyTuple_New(PyTuple_GET_SIZE(r->outputs))) != NULL) {
    for (Py_ssize_t nr = 0; found != NULL && nr < PyTuple_GET_SIZE(r->outputs); nr++) {
      PyObject *made = result(o, PyTuple_GET_ITEM(r->outputs, nr), node, nr);
      if (made == NULL) Py_CLEAR(found);
      else PyTuple_SET_ITEM(found, nr, made);
    }
  }
  Py_XDECREF(node);
  return found;
}

static PyObject *runner_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  ViewRunner *r = (ViewRunner *)self;
  PyObject *values = PyVectorcall_NARGS(flags) == 1 && names == NULL ? args[0] : NULL;
  if (values == NULL || !PyTuple_Check(values) || PyTuple_GET_SIZE(values) < 1 ||
      !PyObject_TypeCheck(PyTuple_GET_ITEM(values, 0), (PyTypeObject *)Tensor))
    return PyObject_Vectorcall(r->written, args, flags, names);
  Operand operand = {NULL};
  int rare = operand_of(r, PyTuple_GET_ITEM(values, 0), &operand);
  PyObject *found = NULL;
  if (rare >= 0) found = rare ? PyObject_CallOneArg(r->written, values) : run(r, PyTuple_GET_ITEM(values, 0), &operand);
  operand_end(&operand);
  return found;
}

// ---------------------------------------------------------------- the type

static int runner_traverse(ViewRunner *r, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(r));
  Py_VISIT(r->plan);
  Py_VISIT(r->kind);
  Py_VISIT(r->outputs);
  Py_VISIT(r->written);
  return 0;
}

static int runner_clear(ViewRunner *r) {
  Py_CLEAR(r->plan);
  Py_CLEAR(r->kind);
  Py_CLEAR(r->outputs);
  Py_CLEAR(r->written);
  return 0;
}

static void runner_dealloc(ViewRunner *r) {
  PyTypeObject *type = Py_TYPE(r);
  PyObject_GC_UnTrack(r);
  runner_clear(r);
  Py_XDECREF(r->origin);
  type->tp_free((PyObject *)r);
  Py_DECREF(type);
}

// ViewRunner(plan, kind, origin, outputs, several, written): `kind` is None where no node is made.
static PyObject *runner_new(PyTypeObject *type, PyObject *args, PyObject *named) {
  PyObject *plan, *kind, *origin, *outputs, *written;
  int several;
  if (!PyArg_ParseTuple(args, "OOUO!pO", &plan, &kind, &origin, &PyTuple_Type, &outputs, &several, &written))
    return NULL;
  ViewRunner *r = (ViewRunner *)type->tp_alloc(type, 0);
  if (r == NULL) return NULL;
  r->vectorcall = runner_call;
  r->plan = Py_NewRef(plan);
  r->kind = Py_NewRef(kind);
  r->origin = Py_NewRef(PyUnicode_GET_LENGTH(origin) ? origin : empty_text);
  r->outputs = Py_NewRef(outputs);
  r->written = Py_NewRef(written);
  r->several = several;
  return (PyObject *)r;
}

static PyMemberDef runner_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ViewRunner, vectorcall), READONLY},
    {NULL},
};
static PyType_Slot runner_slots[] = {
    {Py_tp_new, runner_new},     {Py_tp_dealloc, runner_dealloc}, {Py_tp_traverse, runner_traverse},
    {Py_tp_clear, runner_clear}, {Py_tp_members, runner_members}, {Py_tp_call, PyVectorcall_Call},
    {Py_tp_doc, "Runs a view operation: from a sequence that begins with a tensor to views of it."},
    {0, NULL},
};
static PyType_Spec runner_spec = {
    "compat._core.operators.ViewRunner", sizeof(ViewRunner), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, runner_slots};

// ---------------------------------------------------------------- the module

// bind(names): what the runners work with, by name.
static PyObject *bind(PyObject *module, PyObject *given) {
  const char *const names[] = {"View", "SHARED", "ViewNode", NULL};
  PyObject **places[] = {&View, &SHARED, &ViewNode};
  if (bind_tensor(given) < 0 || bind_node(given) < 0 || bind_objects(given, names, places) < 0) return NULL;
  const Slot slots[] = {{&v_base, &View, "base"}, {&v_version, &View, "version"}, {&v_origin, &View, "origin"},
                        {&v_steps, &View, "steps"}, {&o_plan, &ViewNode, "plan"}};
  if (find_slots(slots, sizeof(slots) / sizeof(*slots)) < 0) return NULL;
  Py_RETURN_NONE;
}

MODULE("view_runner", BIND);

PyMODINIT_FUNC PyInit_view_runner(void) {
  if (intern_tensor_names() < 0 || intern_node_names() < 0) return NULL;
  empty_text = PyUnicode_InternFromString("");
  no_steps = PyTuple_New(0);
  PyObject *made = PyModule_Create(&module), *type = made == NULL ? NULL : PyType_FromSpec(&runner_spec);
  if (type == NULL || PyModule_AddObjectRef(made, "ViewRunner", type) < 0) Py_CLEAR(made);
  Py_XDECREF(type);
  return made;
}
