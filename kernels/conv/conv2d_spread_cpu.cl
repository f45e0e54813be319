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

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_spread_cpu(IN(x), OUT(y), const int planes, const int H, const int W,
                                                                            const int OH, const int OW, const int SH, const int SW,
                                                                            const int each, const int channels EPILOGUE_PARAMETERS) {
  const int first = (int)get_global_id(0) * each, last = BLOCK_END(first, each, planes);
  for (int plane = first; plane < last; ++plane) {
    const int channel = REMAINDER(plane, channels);
    for (int r = 0; r < H; ++r) {
      const bool seen = r % SH == 0 && r / SH < OH;
      const int from = (plane * OH + r / SH) * OW, to = (plane * H + r) * W;
      int i = 0;
      if (!seen) {
        for (; i + VW <= W; i += VW) VSTORE(y, to + i, VEPILOGUE((VFLOAT)(0.0f), to + i, channel, 0));
      } else if (SW == 2) {
        for (; i + VW <= W && (i + VW) / 2 <= OW; i += VW) {
          VFLOAT values = (VFLOAT)(0.0f);
          values.even = LOAD_HALF(0, PTR(x) + from + i / 2);
          VSTORE(y, to + i, VEPILOGUE(values, to + i, channel, 0));
        }
      }
      SELDOM for (; i < W; ++i)
        STORE(y, to + i, EPILOGUE(seen && i % SW == 0 && i / SW < OW ? LOAD(x, from + i / SW) : 0.0f, to + i, channel));
    }
  }
}
