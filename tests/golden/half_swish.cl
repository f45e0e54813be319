#define LANES 8
#define ROUND_EACH 1
#define TYPE_s0 f32
#define TYPE_x0 f16
#define TYPE_y0 f16
#define TYPE_y1 bool
#include "lanes.clh"

kernel void fused_sigmoid_mul_greater(OUT_SHARED(y0), OUT_SHARED(y1), IN_SHARED(x0), SCALAR(s0), const int n0) {
  const int i0 = (int)get_global_id(0) * LANES;
  if (!(i0 < n0)) return;
  const int i = i0;
  if (ALIGNED(y0_offset | y1_offset | x0_offset) && n0 - i >= LANES) {
    VALUE(x0) a0_lanes[LANES];
    LOAD_LANES(x0, i, a0_lanes);
    VALUE(y0) y0_lanes[LANES];
    VALUE(y1) y1_lanes[LANES];
#pragma unroll
    for (int lane = 0; lane < LANES; ++lane) {
      const VALUE(x0) a0 = a0_lanes[lane];
      const float v0 = clnet_round_f16(clnet_sigmoid(a0));  // sigmoid
      const float v1 = clnet_round_f16(a0 * v0);  // mul
      const uchar v2 = (a0 > s0) != 0;  // greater
      y0_lanes[lane] = v1;
      y1_lanes[lane] = (v2) != 0;
    }
    STORE_LANES(y0, i, y0_lanes);
    STORE_LANES(y1, i, y1_lanes);
  } else {
#pragma unroll 1
    for (int lane = 0; lane < min(LANES, n0 - i); ++lane) {
      const VALUE(x0) a0 = LOAD(x0, (i + lane));
      const float v0 = clnet_round_f16(clnet_sigmoid(a0));  // sigmoid
      const float v1 = clnet_round_f16(a0 * v0);  // mul
      const uchar v2 = (a0 > s0) != 0;  // greater
      STORE(y0, i + lane, v1);
      STORE(y1, i + lane, v2);
    }
  }
}
