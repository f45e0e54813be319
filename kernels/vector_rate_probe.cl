// Multiply-adds on vectors, in chains enough to hide how long one takes: lib/cl/vector_rate.cpp measures them.
#include "clnet.clh"

#define PROBE(name, lanes)                                                             \
  kernel void name(global float *y, const float factor, const int steps) {             \
    lanes a = (lanes)(1), b = a + 1, c = a + 2, d = a + 3, e = a + 4;                    \
    lanes f = a + 5, g = a + 6, h = a + 7, i = a + 8, j = a + 9;                       \
    const lanes by = (lanes)(factor);                                                  \
    for (int k = 0; k < steps; ++k) {                                                  \
      a = fma(a, by, by), b = fma(b, by, by), c = fma(c, by, by), d = fma(d, by, by);   \
      e = fma(e, by, by), f = fma(f, by, by), g = fma(g, by, by), h = fma(h, by, by);  \
      i = fma(i, by, by), j = fma(j, by, by);                                          \
    }                                                                                  \
    a += b + c + d + e + f + g + h + i + j;                                            \
    y[0] = a.s0 + a.s1;                                                                \
  }

PROBE(multiply_8, float8)
PROBE(multiply_16, float16)
