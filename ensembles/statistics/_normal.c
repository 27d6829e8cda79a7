/* The distribution function of the standard normal distribution. distributions.py documents it. */
#include "_compiled.h"
#include "summaries/arrays.h"

#include <math.h>

/* The complementary error function keeps all digits in the lower tail, where 1 + erf(x) would lose them. */
static PyObject *normal_cdf(PyObject *module, PyObject *args)
{
    (void)module;
    enum { VALUE, OUT, ARRAYS };
    static const array_kind wanted[ARRAYS] = {{"value", 8, 0}, {"out", 8, WRITTEN}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, ARRAYS) == 0) {
        const double *value = views[VALUE].buf;
        double *out = views[OUT].buf;
        const Py_ssize_t count = length_of(&views[VALUE]);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < count; i++)
            out[i] = 0.5 * erfc(-value[i] * 0.70710678118654752440);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_arrays(views, ARRAYS);
    return result;
}

PyMethodDef normal_functions[] = {{"normal_cdf", normal_cdf, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
