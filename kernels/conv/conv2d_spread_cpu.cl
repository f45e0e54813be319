// The gradient {planes, H, W} of what a 1x1 convolution with steps sees: x {planes, OH, OW}, f32, at every SH-th row's every SW-th
// element, and zeros around. A work-item makes `each` planes.
#include "vector.clh"
#include "epilogue.clh"

#if VW == 16
#define LOAD_HALF vload8
#elif VW == 8
#define LOAD_HALF vload4
#else
#define LOAD_HALF vload2
#endif

// Elements [i, i + VW) of a row whose seen ones are `count` from `row` on, SW apart.
static inline VFLOAT spread(const global float *restrict row, const int count, const int SW, const int i) {
  if (SW == 1 && i + VW <= count) return *(const global any_vector *)(row + i);
  VFLOAT values = (VFLOAT)(0.0f);
  if (SW == 2 && i / 2 + VW / 2 <= count) {
    values.even = LOAD_HALF(0, row + i / 2);
    return values;
  }
  float lanes[VW];
  *(any_vector *)lanes = values;
  int k = (i + SW - 1) / SW;
  SELDOM for (int lane = k * SW - i; lane < VW && k < count; lane += SW, ++k) lanes[lane] = row[k];
  return *(const any_vector *)lanes;
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_spread_cpu(IN(x), OUT(y), const int planes, const int H, const int W,
                                                                            const int OH, const int OW, const int SH, const int SW,
                                                                            const int each, const int channels EPILOGUE_PARAMETERS) {
  const int first = (int)get_global_id(0) * each, last = BLOCK_END(first, each, planes);
  for (int plane = first; plane < last; ++plane) {
    const int channel = REMAINDER(plane, channels);
    for (int r = 0; r < H; ++r) {
      const int count = r % SH == 0 && r / SH < OH ? OW : 0, to = (plane * H + r) * W;
      const global float *restrict row = PTR(x) + (count > 0 ? (plane * OH + r / SH) * OW : 0);
      for (int i = 0; i < W; i += VW) {
        const VFLOAT values = spread(row, count, SW, i);
        if (i + VW <= W)
          VSTORE(y, to + i, VEPILOGUE(values, to + i, channel, 0));
        else
          VSTORE_PART_FINISHED(y, to + i, W - i, values, channel, 0);
      }
    }
  }
}
