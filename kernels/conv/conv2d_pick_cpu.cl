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
      // The last vector ends with the row.
      if (SW == 1 && OW >= VW) {
        for (int i = 0; i < OW; i += VW) {
          const int j = min(i, OW - VW);
          VSTORE(y, to + j, VLOAD(x, from + j));
        }
      } else if (SW == 2 && OW >= VW) {
        for (int i = 0; i < OW; i += VW) {
          const int j = min(i, OW - VW);
          VSTORE(y, to + j, (VFLOAT)(VLOAD(x, from + 2 * j).even, VLOAD(x, from + 2 * j + VW - 1).odd));
        }
      } else {
        SELDOM for (int i = 0; i < OW; ++i) STORE(y, to + i, LOAD(x, from + i * SW));
      }
    }
}
