// b as matmul_packed_cpu.cl reads it: panels of COLUMNS vectors, of each all k rows one after the other. What is beyond the last column
// repeats it. TRANSPOSED: b is {n, k}. A work-item makes a panel.
#include "transpose.clh"

#define WIDTH (VW * COLUMNS)

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void matmul_pack_cpu(IN(b), OUT(packed), const int n, const int k) {
  const int panel = (int)get_global_id(0), j0 = panel * WIDTH;
  global float *restrict to = PTR(packed) + panel * k * WIDTH;
  for (int q = 0; q < COLUMNS; ++q) {
    const int j = j0 + q * VW;
    int t = 0;
#ifdef TRANSPOSED
    for (; t + VW <= k; t += VW) {
      VFLOAT x[VW];
      #pragma unroll
      for (int i = 0; i < VW; ++i) x[i] = VLOAD(b, min(j + i, n - 1) * k + t);
      TRANSPOSE(x)
      #pragma unroll
      for (int i = 0; i < VW; ++i) *(global any_vector *)(to + (t + i) * WIDTH + q * VW) = x[i];
    }
#else
    if (j + VW <= n)
      for (; t < k; ++t) *(global any_vector *)(to + t * WIDTH + q * VW) = VLOAD(b, t * n + j);
#endif
    SELDOM for (; t < k; ++t)
      SELDOM for (int i = 0; i < VW; ++i) {
        const int column = min(j + i, n - 1);
#ifdef TRANSPOSED
        to[t * WIDTH + q * VW + i] = LOAD(b, column * k + t);
#else
        to[t * WIDTH + q * VW + i] = LOAD(b, t * n + column);
#endif
      }
  }
}
