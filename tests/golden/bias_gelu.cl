#define LANES 4
#define ROUND_EACH 1
#define TYPE_x0 f32
#define TYPE_x1 f32
#define TYPE_y0 f32
#include "lanes.clh"

kernel void fused_add_gelu_tanh(OUT_SHARED(y0), IN_SHARED(x0), IN_SHARED(x1), const int n0, const int n1, const int n2,
                                const int a1_1) {
  const int i0 = (int)get_global_id(2);
  const int i1 = (int)get_global_id(1);
  const int i2 = (int)get_global_id(0) * LANES;
  if (!(i0 < n0 && i1 < n1 && i2 < n2)) return;
  const int i = (i0 * n1 + i1) * n2 + i2;
  const VALUE(x1) a1 = LOAD(x1, i1 * a1_1);
  if (ALIGNED(y0_offset | x0_offset)) {
    VALUE(x0) a0_lanes[LANES];
    LOAD_LANES(x0, i, a0_lanes);
    VALUE(y0) y0_lanes[LANES];
#pragma unroll
    for (int lane = 0; lane < LANES; ++lane) {
      const VALUE(x0) a0 = a0_lanes[lane];
      const float v0 = a0 + a1;  // add
      y0_lanes[lane] = (v0 < -200.0f ? -200.0f : v0) * clnet_sigmoid(1.5957691216057307f * (v0 + 0.044715f * v0 * v0 * v0));  // gelu_tanh
    }
    STORE_LANES(y0, i, y0_lanes);
  } else {
#pragma unroll 1
    for (int lane = 0; lane < LANES; ++lane) {
      const VALUE(x0) a0 = LOAD(x0, (i + lane));
      const float v0 = a0 + a1;  // add
      STORE(y0, i + lane, (v0 < -200.0f ? -200.0f : v0) * clnet_sigmoid(1.5957691216057307f * (v0 + 0.044715f * v0 * v0 * v0)));  // gelu_tanh
    }
  }
}
