#define ROUND_EACH 1
#define TYPE_x0 f32
#define TYPE_x1 f32
#define TYPE_x2 f32
#define TYPE_y0 f32
#include "clnet.clh"

kernel void fused_mul_add(OUT_SHARED(y0), IN_SHARED(x0), IN_SHARED(x1), IN_SHARED(x2), const int n0, const int n1,
                          const int a2_0) {
  const int i = (int)get_global_id(0);
  if (i >= n0 * n1) return;
  const int i1 = REMAINDER(i, n1);
  const int i0 = i / n1;
  const VALUE(x2) a2 = LOAD(x2, i0 * a2_0);
  const VALUE(x0) a0 = LOAD(x0, i);
  const VALUE(x1) a1 = LOAD(x1, i1);
  const float v0 = a0 * a1;  // mul
  STORE(y0, i, v0 + a2);  // add
}
