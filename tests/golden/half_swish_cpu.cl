#define TYPE_x0 f16
#define TYPE_y0 f16
#include "clnet.clh"

kernel WIDE_KERNEL void fused_sigmoid_mul(OUT_SHARED(y0), IN_SHARED(x0), const int n0, const int piece) {
  const int from = (int)get_global_id(0) * piece, to = from + min(piece, n0 - from);
VECTOR_LOOP
  for (int i = from; i < to; ++i) {
    const VALUE(x0) a0 = LOAD(x0, i);
    const float v0 = clnet_round_f16(clnet_sigmoid(a0));  // sigmoid
    STORE(y0, i, a0 * v0);  // mul
  }
}
