// What a 1x1 convolution with steps sees of planes {H, W}: every SH-th row's every SW-th element, as y {planes, OH, OW}. A work-item
// copies `each` planes.
#include "vector.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_pick_cpu(IN(x), OUT(y), const int planes, const int H, const int W,
                                                                          const int OH, const int OW, const int SH, const int SW,
                                                                          const int each) {
  const int first = (int)get_global_id(0) * each, last = BLOCK_END(first, each, planes);
  for (int plane = first; plane < last; ++plane)
    for (int r = 0; r < OH; ++r) {
      const int from = (plane * H + r * SH) * W, to = (plane * OH + r) * OW;
      if (SW <= 2 && OW >= VW) {
        for (int i = 0; i < OW; i += VW) {
          // The last vector ends with the row.
          const int j = min(i, OW - VW), at = from + j * SW;
          VSTORE(y, to + j, SW == 1 ? VLOAD(x, at) : (VFLOAT)(VLOAD(x, at).even, VLOAD(x, at + VW - 1).odd));
        }
      } else {
        SELDOM for (int i = 0; i < OW; ++i) STORE(y, to + i, LOAD(x, from + i * SW));
      }
    }
}
