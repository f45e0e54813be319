// The gradient of a convolution's weight by its definition: one weight per work-item.
#include "clnet.clh"

kernel void conv2d_backward_weights_direct(IN(x), IN(y), OUT(w), const int total, const int N, const int C, const int H,
                                           const int W, const int O, const int KH, const int KW, const int OH, const int OW,
                                           const int SH, const int SW, const int PT, const int PL, const int DH,
                                           const int DW, const int CG, const int OG) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int kw = i % KW, kh = i / KW % KH, c = i / (KW * KH) % CG, o = i / (KW * KH) / CG;
  const int channel = o / OG * CG + c;
  float sum = 0;
  for (int n = 0; n < N; ++n) {
    float image = 0;
    for (int oy = 0; oy < OH; ++oy) {
      const int iy = oy * SH - PT + kh * DH;
      if (iy < 0 || iy >= H) continue;
      for (int ox = 0; ox < OW; ++ox) {
        const int ix = ox * SW - PL + kw * DW;
        if (ix < 0 || ix >= W) continue;
        image += LOAD(x, ((n * C + channel) * H + iy) * W + ix) * LOAD(y, ((n * O + o) * OH + oy) * OW + ox);
      }
    }
    sum += image;
  }
  STORE(w, i, sum);
}
