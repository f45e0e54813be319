#define TYPE_x0 f32
#define TYPE_x1 f32
#define TYPE_y0 f32
#include "clnet.clh"

kernel WIDE_KERNEL void fused_add_gelu_tanh(OUT_SHARED(y0), IN_SHARED(x0), IN_SHARED(x1), const int n0, const int n1,
                                            const int n2, const int a1_1, const int rows, const int rows_per_item,
                                            const int piece, const int pieces) {
  const int item = (int)get_global_id(0), from = REMAINDER(item, pieces) * piece, to = from + min(piece, n2 - from);
  const int first = item / pieces * rows_per_item, last = first + min(rows_per_item, rows - first);
  for (int row = first; row < last; ++row) {
    const int i1 = REMAINDER(row, n1);
    const int i0 = row / n1;
    const VALUE(x1) a1 = LOAD(x1, i1 * a1_1);
VECTOR_LOOP
    for (int i2 = from; i2 < to; ++i2) {
      const int i = row * n2 + i2;
      const VALUE(x0) a0 = LOAD(x0, i);
      const float v0 = a0 + a1;  // add
      STORE(y0, i, (v0 < -200.0f ? -200.0f : v0) * clnet_sigmoid(1.5957691216057307f * (v0 + 0.044715f * v0 * v0 * v0)));  // gelu_tanh
    }
  }
}
