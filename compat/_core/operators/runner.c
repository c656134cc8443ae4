// The C twin of the functions that codegen.py writes: a Runner runs a plan whose program is recorded.
//
// What is rare goes to the written function, asked before anything has been done: while hooks of saved tensors are in
// force, and where an operand that is to be kept counts no versions.
#include "../autograd/node.h"

static PyObject *Deferred, *SavedResult, *Layout, *OpNode, *clock_, *local, *settings, *make_room;
static PyObject *n_now, *n_ops, *n_limit;
static Py_ssize_t l_base, o_plan, o_saved, o_numbers;
static Py_ssize_t k_storage, k_layout, k_offset, k_counter, k_version, k_nr, k_maker;

enum { BUFFER, BUFFER_AND_OFFSET, NUMBER };

typedef struct {
  Py_ssize_t input;
  int what;
  PyObject *least, *most, *otherwise;  // of a number that is not taken as it comes
} Input;

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *plan, *code, *kind, *make, *finish, *written, *layouts;
  Input *inputs;
  Py_ssize_t input_count, buffer_count, number_count, value_count;
  Py_ssize_t *edges, edge_count;  // -1 for none
  Py_ssize_t *saves, save_count;
  Py_ssize_t *results, result_count;
  char *numeric, *differentiable;
  int any_numeric;
} Runner;

// ---------------------------------------------------------------- operands

static PyObject *number_of(const Input *input, PyObject *value) {
  if (input->otherwise == NULL) return Py_NewRef(value);
  if (input->least != NULL) {
    int fits = PyObject_RichCompareBool(input->least, value, Py_LE);
    if (fits > 0) fits = PyObject_RichCompareBool(value, input->most, Py_LE);
    if (fits < 0) return NULL;
    if (fits) return Py_NewRef(value);
  }
  return PyObject_CallOneArg(input->otherwise, value);
}

// The operands and the numbers of the operation, as two tuples.
static int operands(Runner *r, PyObject *const *values, PyObject **buffers, PyObject **numbers) {
  PyObject *of_buffers = PyTuple_New(r->buffer_count), *of_numbers = PyTuple_New(r->number_count);
  Py_ssize_t b = 0, n = 0;
  int failed = of_buffers == NULL || of_numbers == NULL;
  for (Py_ssize_t i = 0; !failed && i < r->input_count; i++) {
    const Input *input = &r->inputs[i];
    PyObject *value = values[input->input], *found;
    if (input->what != NUMBER) {
      PyObject *storage = of_tensor(value, t_storage, n_storage);
      found = storage == NULL ? NULL : buffer_of(storage);
      Py_XDECREF(storage);
      if (found == NULL) failed = 1;
      else PyTuple_SET_ITEM(of_buffers, b++, found);
    }
    if (!failed && input->what != BUFFER) {
      found = input->what == NUMBER ? number_of(input, value) : of_tensor(value, t_offset, n_offset);
      if (found == NULL) failed = 1;
      else PyTuple_SET_ITEM(of_numbers, n++, found);
    }
  }
  if (failed) {
    Py_XDECREF(of_buffers);
    Py_XDECREF(of_numbers);
    return -1;
  }
  *buffers = of_buffers;
  *numbers = of_numbers;
  return 0;
}

// ---------------------------------------------------------------- recording

// What `record` and `record_all` of funcgrad.runtime.deferred do. Takes over the references; gives the results.
static PyObject *record(Runner *r, PyObject *buffers, PyObject *numbers) {
  Py_ssize_t count = PyTuple_GET_SIZE(r->layouts);
  PyObject *results = PyTuple_New(count), *ops = NULL, *operation = NULL, *limit = NULL;
  if (results == NULL) goto failed;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *result = instance(Deferred);
    if (result == NULL) goto failed;
    PyTuple_SET_ITEM(results, i, result);
  }
  ops = PyObject_GetAttr(local, n_ops);
  limit = PyObject_GetAttr(settings, n_limit);
  operation = PyTuple_Pack(4, r->code, buffers, numbers, results);
  if (ops == NULL || limit == NULL || operation == NULL || PyList_Append(ops, operation) < 0) goto failed;
  long most = PyLong_AsLong(limit);
  if (most == -1 && PyErr_Occurred()) goto failed;
  if (PyList_GET_SIZE(ops) >= most) {
    PyObject *made = PyObject_CallNoArgs(make_room);
    if (made == NULL) goto failed;
    Py_DECREF(made);
  }
  goto done;
failed:
  Py_CLEAR(results);
done:
  Py_XDECREF(ops);
  Py_XDECREF(limit);
  Py_XDECREF(operation);
  Py_DECREF(buffers);
  Py_DECREF(numbers);
  return results;
}

// What `new_tensor` of compat._core.tensor.constructors does.
static PyObject *new_tensor(PyObject *buffer, PyObject *layout) {
  PyObject *storage = instance(UntypedStorage);
  if (storage == NULL) return NULL;
  PyObject *now = PyObject_GetAttr(clock_, n_now), *t = NULL;
  if (now != NULL) {
    slot_set(storage, s_buffer, Py_NewRef(buffer));
    slot_set(storage, s_base, Py_NewRef(slot_get(layout, l_base)));
    slot_set(storage, s_version, Py_NewRef(zero));
    slot_set(storage, s_born, now);
    t = tensor_over(storage, layout, zero, storage, Py_None);
  }
  Py_DECREF(storage);
  return t;
}

// ---------------------------------------------------------------- nodes

// Whether the written function has to do it: 1 if so, -1 for an error.
static int is_rare(Runner *r, PyObject *const *values) {
  int rare = hooks_are_used();
  for (Py_ssize_t i = 0; rare == 0 && i < r->save_count; i++) {
    PyObject *t = values[r->saves[i]];
    if ((PyObject *)Py_TYPE(t) == Tensor) {
      PyObject *counter = slot_get(t, t_counter);
      rare = counter == NULL || counter == Py_None;
    } else if (!PyObject_TypeCheck(t, (PyTypeObject *)Tensor)) {
      rare = 1;
    } else {
      PyObject *counter = PyObject_GetAttr(t, n_counter);
      if (counter == NULL) return -1;
      rare = counter == Py_None;
      Py_DECREF(counter);
    }
  }
  return rare;
}

static PyObject *saved_operand(PyObject *t) {
  PyObject *counter = of_tensor(t, t_counter, n_counter);
  if (counter == NULL) return NULL;
  PyObject *version = version_of(counter);
  Py_DECREF(counter);
  if (version == NULL) return NULL;
  PyObject *entry = PyTuple_Pack(2, t, version);
  Py_DECREF(version);
  return entry;
}

static PyObject *saved_result(PyObject *t, Py_ssize_t nr) {
  PyObject *kept = instance(SavedResult), *number = kept == NULL ? NULL : PyLong_FromSsize_t(nr);
  if (number == NULL) {
    Py_XDECREF(kept);
    return NULL;
  }
  PyObject *storage = slot_get(t, t_storage);
  slot_set(kept, k_storage, Py_NewRef(storage));
  slot_set(kept, k_layout, Py_NewRef(slot_get(t, t_layout)));
  slot_set(kept, k_offset, Py_NewRef(slot_get(t, t_offset)));
  slot_set(kept, k_counter, Py_NewRef(storage));
  slot_set(kept, k_version, Py_NewRef(slot_get(storage, s_version)));
  slot_set(kept, k_nr, number);
  slot_set(kept, k_maker, Py_NewRef(Py_None));
  return kept;
}

// A node that keeps operands; room is left for the results that it keeps.
static PyObject *new_node(Runner *r, PyObject *const *values) {
  PyObject *node = node_of(r->kind, r->edge_count);
  if (node == NULL) return NULL;
  slot_set(node, o_plan, Py_NewRef(r->plan));
  PyObject *functions = slot_get(node, o_functions);
  for (Py_ssize_t i = 0; i < r->edge_count; i++) {
    PyObject *edge = r->edges[i] < 0 ? Py_NewRef(no_edge) : edge_to(values[r->edges[i]]);
    if (edge == NULL) goto failed;
    PyTuple_SET_ITEM(functions, i, edge);
  }
  PyObject *numbers = PyTuple_New(r->any_numeric ? r->value_count : 0);
  if (numbers == NULL) goto failed;
  slot_set(node, o_numbers, numbers);
  for (Py_ssize_t i = 0; r->any_numeric && i < r->value_count; i++)
    PyTuple_SET_ITEM(numbers, i, Py_NewRef(r->numeric[i] ? values[i] : Py_None));
  PyObject *saved = PyTuple_New(r->save_count + r->result_count);
  if (saved == NULL) goto failed;
  slot_set(node, o_saved, saved);
  for (Py_ssize_t i = 0; i < r->save_count; i++) {
    PyObject *entry = saved_operand(values[r->saves[i]]);
    if (entry == NULL) goto failed;
    PyTuple_SET_ITEM(saved, i, entry);
  }
  return node;
failed:
  Py_DECREF(node);
  return NULL;
}

// Makes the node keep those results that backward needs.
static int keep_results(Runner *r, PyObject *node, PyObject *const *tensors) {
  PyObject *saved = slot_get(node, o_saved);
  for (Py_ssize_t i = 0; i < r->result_count; i++) {
    Py_ssize_t nr = r->results[i];
    PyObject *entry = r->differentiable[nr] ? saved_result(tensors[nr], nr) : saved_operand(tensors[nr]);
    if (entry == NULL) return -1;
    PyTuple_SET_ITEM(saved, r->save_count + i, entry);
  }
  return 0;
}

// ---------------------------------------------------------------- running

static PyObject *finished(Runner *r, PyObject *tensors) {
  if (r->finish == Py_None) return Py_NewRef(PyList_GET_ITEM(tensors, 0));
  if (r->finish == (PyObject *)&PyList_Type) return Py_NewRef(tensors);
  return PyObject_CallOneArg(r->finish, tensors);
}

static PyObject *run(Runner *r, PyObject *const *values) {
  PyObject *node = NULL, *buffers, *numbers, *results = NULL, *tensors = NULL, *found = NULL;
  if (r->kind != Py_None && (node = new_node(r, values)) == NULL) return NULL;
  if (operands(r, values, &buffers, &numbers) < 0) goto done;
  if ((results = record(r, buffers, numbers)) == NULL) goto done;
  Py_ssize_t count = PyTuple_GET_SIZE(results);
  if ((tensors = PyList_New(count)) == NULL) goto done;
  for (Py_ssize_t nr = 0; nr < count; nr++) {
    PyObject *t = new_tensor(PyTuple_GET_ITEM(results, nr), PyTuple_GET_ITEM(r->layouts, nr));
    if (t == NULL) goto done;
    PyList_SET_ITEM(tensors, nr, t);
    if (node == NULL || !r->differentiable[nr]) continue;
    if (link_to(t, node, nr) < 0) goto done;
  }
  if (node != NULL && keep_results(r, node, ((PyListObject *)tensors)->ob_item) < 0) goto done;
  found = finished(r, tensors);
done:
  Py_XDECREF(node);
  Py_XDECREF(results);
  Py_XDECREF(tensors);
  return found;
}

static PyObject *runner_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  Runner *r = (Runner *)self;
  if (PyVectorcall_NARGS(flags) != 1 || (names != NULL && PyTuple_GET_SIZE(names) > 0)) {
    PyErr_SetString(PyExc_TypeError, "a plan's runner takes one sequence of values");
    return NULL;
  }
  PyObject *values = PySequence_Fast(args[0], "a plan's runner takes a sequence of values"), *found = NULL;
  if (values == NULL) return NULL;
  if (PySequence_Fast_GET_SIZE(values) != r->value_count) {
    PyErr_Format(PyExc_ValueError, "%zd values for a plan of %zd", PySequence_Fast_GET_SIZE(values), r->value_count);
  } else {
    PyObject *const *items = PySequence_Fast_ITEMS(values);
    int rare = r->kind == Py_None ? 0 : is_rare(r, items);
    if (rare >= 0) found = rare ? PyObject_CallOneArg(r->written, values) : run(r, items);
  }
  Py_DECREF(values);
  return found;
}

// ---------------------------------------------------------------- the type

static int runner_traverse(Runner *r, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(r));
  Py_VISIT(r->plan);
  Py_VISIT(r->code);
  Py_VISIT(r->kind);
  Py_VISIT(r->finish);
  Py_VISIT(r->written);
  Py_VISIT(r->layouts);
  for (Py_ssize_t i = 0; i < r->input_count; i++) Py_VISIT(r->inputs[i].otherwise);
  return 0;
}

static int runner_clear(Runner *r) {
  Py_CLEAR(r->plan);
  Py_CLEAR(r->code);
  Py_CLEAR(r->kind);
  Py_CLEAR(r->finish);
  Py_CLEAR(r->written);
  Py_CLEAR(r->layouts);
  return 0;
}

static void runner_dealloc(Runner *r) {
  PyTypeObject *type = Py_TYPE(r);
  PyObject_GC_UnTrack(r);
  runner_clear(r);
  for (Py_ssize_t i = 0; i < r->input_count; i++) {
    Py_XDECREF(r->inputs[i].least);
    Py_XDECREF(r->inputs[i].most);
    Py_XDECREF(r->inputs[i].otherwise);
  }
  PyMem_Free(r->inputs);
  PyMem_Free(r->edges);
  PyMem_Free(r->saves);
  PyMem_Free(r->results);
  PyMem_Free(r->numeric);
  PyMem_Free(r->differentiable);
  type->tp_free((PyObject *)r);
  Py_DECREF(type);
}

// Whole numbers of a tuple, -1 for None.
static Py_ssize_t *numbers_of(PyObject *tuple, Py_ssize_t *count) {
  *count = PyTuple_GET_SIZE(tuple);
  Py_ssize_t *found = PyMem_Calloc(*count + 1, sizeof(Py_ssize_t));
  if (found == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; found != NULL && i < *count; i++) {
    PyObject *item = PyTuple_GET_ITEM(tuple, i);
    found[i] = item == Py_None ? -1 : PyLong_AsSsize_t(item);
  }
  return found;
}

static char *flags_of(PyObject *tuple) {
  Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  char *found = PyMem_Calloc(count + 1, 1);
  if (found == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; found != NULL && i < count; i++) found[i] = PyObject_IsTrue(PyTuple_GET_ITEM(tuple, i)) == 1;
  return found;
}

static int set_inputs(Runner *r, PyObject *inputs) {
  r->input_count = PyTuple_GET_SIZE(inputs);
  r->inputs = PyMem_Calloc(r->input_count + 1, sizeof(Input));
  if (r->inputs == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < r->input_count; i++) {
    Input *input = &r->inputs[i];
    PyObject *least, *most, *otherwise;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(inputs, i), "niOOO", &input->input, &input->what, &least, &most, &otherwise))
      return -1;
    if (least != Py_None) input->least = Py_NewRef(least);
    if (most != Py_None) input->most = Py_NewRef(most);
    if (otherwise != Py_None) input->otherwise = Py_NewRef(otherwise);
    r->buffer_count += input->what != NUMBER;
    r->number_count += input->what != BUFFER;
  }
  return 0;
}

// Runner(plan, code, kind, finish, written, layouts, inputs, value_count, edges, saves, results, numeric,
// differentiable): `finish` is None where the only result is given, `kind` is None where no node is made, an input is
// (which value, what it is to the program, least, most, otherwise).
static PyObject *runner_new(PyTypeObject *type, PyObject *args, PyObject *named) {
  PyObject *plan, *code, *kind, *finish, *written, *layouts, *inputs, *edges, *saves, *results, *numeric, *through;
  Py_ssize_t value_count;
  if (!PyArg_ParseTuple(args, "OOOOOO!O!nO!O!O!O!O!", &plan, &code, &kind, &finish, &written, &PyTuple_Type, &layouts,
                        &PyTuple_Type, &inputs, &value_count, &PyTuple_Type, &edges, &PyTuple_Type, &saves,
                        &PyTuple_Type, &results, &PyTuple_Type, &numeric, &PyTuple_Type, &through))
    return NULL;
  Runner *r = (Runner *)type->tp_alloc(type, 0);
  if (r == NULL) return NULL;
  r->vectorcall = runner_call;
  r->plan = Py_NewRef(plan);
  r->code = Py_NewRef(code);
  r->kind = Py_NewRef(kind);
  r->finish = Py_NewRef(finish);
  r->written = Py_NewRef(written);
  r->layouts = Py_NewRef(layouts);
  r->value_count = value_count;
  r->edges = numbers_of(edges, &r->edge_count);
  r->saves = numbers_of(saves, &r->save_count);
  r->results = numbers_of(results, &r->result_count);
  r->numeric = flags_of(numeric);
  r->differentiable = flags_of(through);
  for (Py_ssize_t i = 0; r->numeric != NULL && i < PyTuple_GET_SIZE(numeric); i++) r->any_numeric |= r->numeric[i];
  if (set_inputs(r, inputs) < 0 || PyErr_Occurred()) {
    Py_DECREF(r);
    return NULL;
  }
  return (PyObject *)r;
}

static PyMemberDef runner_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Runner, vectorcall), READONLY},
    {"plan", T_OBJECT_EX, offsetof(Runner, plan), READONLY, "what it runs"},
    {NULL},
};
static PyType_Slot runner_slots[] = {
    {Py_tp_new, runner_new},           {Py_tp_dealloc, runner_dealloc}, {Py_tp_traverse, runner_traverse},
    {Py_tp_clear, runner_clear},       {Py_tp_members, runner_members}, {Py_tp_call, PyVectorcall_Call},
    {Py_tp_doc, "Runs a plan whose program is recorded: from a sequence of tensors and numbers to results."},
    {0, NULL},
};
static PyType_Spec runner_spec = {
    "compat._core.operators.Runner", sizeof(Runner), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, runner_slots};

// ---------------------------------------------------------------- the module

// bind(names): what the runners work with, by name.
static PyObject *bind(PyObject *module, PyObject *given) {
  const char *const names[] = {"Deferred", "SavedResult", "Layout", "OpNode", "clock", "local", "settings", "make_room",
                               NULL};
  PyObject **places[] = {&Deferred, &SavedResult, &Layout, &OpNode, &clock_, &local, &settings, &make_room};
  if (bind_tensor(given) < 0 || bind_node(given) < 0 || bind_objects(given, names, places) < 0) return NULL;
  const Slot slots[] = {
      {&l_base, &Layout, "base"}, {&k_storage, &SavedResult, "storage"}, {&k_layout, &SavedResult, "layout"},
      {&k_offset, &SavedResult, "offset"}, {&k_counter, &SavedResult, "counter"},
      {&k_version, &SavedResult, "version"}, {&k_nr, &SavedResult, "nr"}, {&k_maker, &SavedResult, "maker"},
      {&o_plan, &OpNode, "plan"}, {&o_saved, &OpNode, "saved"}, {&o_numbers, &OpNode, "numbers"},
  };
  if (find_slots(slots, sizeof(slots) / sizeof(*slots)) < 0) return NULL;
  Py_RETURN_NONE;
}

MODULE("runner", BIND);

PyMODINIT_FUNC PyInit_runner(void) {
  const Name names[] = {{&n_now, "now"}, {&n_ops, "ops"}, {&n_limit, "limit"}};
  if (intern_tensor_names() < 0 || intern_node_names() < 0 || intern_names(names, 3) < 0) return NULL;
  PyObject *made = PyModule_Create(&module), *type = made == NULL ? NULL : PyType_FromSpec(&runner_spec);
  if (type == NULL || PyModule_AddObjectRef(made, "Runner", type) < 0) Py_CLEAR(made);
  Py_XDECREF(type);
  return made;
}
