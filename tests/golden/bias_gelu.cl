#define TYPE_x0 f32
#define TYPE_x1 f32
#define TYPE_y0 f32
#include "clnet.clh"

kernel void fused_add_gelu_tanh(OUT_SHARED(y0), IN_SHARED(x0), IN_SHARED(x1), const int n0, const int n1, const int n2,
                                const int a1_1) {
  const int i0 = (int)get_global_id(2);
  const int i1 = (int)get_global_id(1);
  const int i2 = (int)get_global_id(0);
  if (!(i0 < n0 && i1 < n1 && i2 < n2)) return;
  const int i = (i0 * n1 + i1) * n2 + i2;
  const VALUE(x1) a1 = LOAD(x1, i1 * a1_1);
  const VALUE(x0) a0 = LOAD(x0, i);
  const float v0 = a0 + a1;  // add
  STORE(y0, i, (v0 < -200.0f ? -200.0f : v0) * clnet_sigmoid(1.5957691216057307f * (v0 + 0.044715f * v0 * v0 * v0)));  // gelu_tanh
}
