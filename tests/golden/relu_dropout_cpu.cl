#define TYPE_s0 i64
#define TYPE_s1 i64
#define TYPE_x0 f32
#define TYPE_y0 f32
#define TYPE_y1 f32
#include "clnet.clh"

kernel WIDE_KERNEL void fused_relu_dropout(OUT_SHARED(y0), OUT_SHARED(y1), IN_SHARED(x0), SCALAR(s0), SCALAR(s1),
                                           const float p0, const float p1, const int n0, const int piece) {
  const int from = (int)get_global_id(0) * piece, to = from + min(piece, n0 - from);
VECTOR_LOOP
  for (int i = from; i < to; ++i) {
    const VALUE(x0) a0 = LOAD(x0, i);
    const float v0 = a0 < 0 ? 0 : a0;  // relu
    const float v1 = clnet_uniform((ulong)s0, (ulong)s1, (ulong)i) < p0 ? 0.0f : v0 * p1;  // dropout
    STORE(y0, i, v0);
    STORE(y1, i, v1);
  }
}
