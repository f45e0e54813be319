// The gradient of a convolution's weight by its definition: one weight per work-item, and one part of the batch's `rows` rows of
// outputs. Parts lie one after the other in w.
#include "clnet.clh"

kernel void conv2d_backward_weights_direct(IN(x), IN(y), OUT(w), const int total, const int parts, const int rows,
                                           const int rows_per_part, const int C, const int H, const int W, const int O,
                                           const int KH, const int KW, const int OH, const int OW, const int SH, const int SW,
                                           const int PT, const int PL, const int DH, const int DW, const int CG, const int OG) {
  const int i = (int)get_global_id(0), part = (int)get_global_id(1);
  if (i >= total || part >= parts) return;
  const int kw = i % KW, kh = i / KW % KH, c = i / (KW * KH) % CG, o = i / (KW * KH) / CG;
  const int channel = o / OG * CG + c, first = part * rows_per_part, last = min(rows, first + rows_per_part);
  float sum = 0;
  for (int row = first; row < last; ++row) {
    const int n = row / OH, oy = row % OH, iy = oy * SH - PT + kh * DH;
    if (iy < 0 || iy >= H) continue;
    float row_sum = 0;
    for (int ox = 0; ox < OW; ++ox) {
      const int ix = ox * SW - PL + kw * DW;
      if (ix < 0 || ix >= W) continue;
      row_sum += LOAD(x, ((n * C + channel) * H + iy) * W + ix) * LOAD(y, ((n * O + o) * OH + oy) * OW + ox);
    }
    sum += row_sum;
  }
  STORE(w, part * total + i, sum);
}
