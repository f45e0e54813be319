#define TYPE_s0 f32
#define TYPE_s1 f32
#define TYPE_x0 f32
#define TYPE_x1 f32
#define TYPE_y0 f32
#include "clnet.clh"

kernel WIDE_KERNEL void fused_greater_where(OUT_SHARED(y0), IN_SHARED(x0), IN_SHARED(x1), SCALAR(s0), SCALAR(s1),
                                            const int n0, const int piece) {
  const int from = (int)get_global_id(0) * piece, to = from + min(piece, n0 - from);
VECTOR_LOOP
  for (int i = from; i < to; ++i) {
    const VALUE(x0) a0 = LOAD(x0, i);
    const uchar v0 = (a0 > s0) != 0;  // greater
    const VALUE(x1) a1 = LOAD(x1, i);
    STORE(y0, i, v0 ? a1 : s1);  // where
  }
}
