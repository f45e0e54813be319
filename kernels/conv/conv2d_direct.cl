// Convolution by its definition: one output per work-item.
#include "conv2d_slices.clh"
#include "epilogue.clh"

kernel void conv2d_direct(IN(x), IN(w),
#ifdef BIAS
                          IN(bias),
#endif
                          OUT(y), const int total, const int C, const int H, const int W, const int O, const int KH,
                          const int KW, const int OH, const int OW, const int SH, const int SW, const int PT, const int PL,
                          const int DH, const int DW, const int CG, const int OG SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int ox = i % OW, oy = i / OW % OH, plane = i / (OW * OH);
  const int o = plane / Y_PLANES % O, n = plane / Y_PLANES / O * Y_PLANES + plane % Y_PLANES;
  const int first_channel = o / OG * CG;
  float sum = 0;
  for (int block = 0, end; block < CG; block = end) {
    end = BLOCK_END(block, CLNET_BLOCK, CG);
    float part = 0;
    for (int c = block; c < end; ++c) {
      float channel = 0;
      for (int kh = 0; kh < KH; ++kh) {
        const int iy = oy * SH - PT + kh * DH;
        if (iy < 0 || iy >= H) continue;
        for (int kw = 0; kw < KW; ++kw) {
          const int ix = ox * SW - PL + kw * DW;
          if (ix < 0 || ix >= W) continue;
          channel += LOAD(x, ((n * C + first_channel + c) * H + iy) * W + ix) * LOAD(w, ((o * CG + c) * KH + kh) * KW + kw);
        }
      }
      part += channel;
    }
    sum += part;
  }
#ifdef BIAS
  sum += LOAD(bias, o);
#endif
  STORE(y, i, EPILOGUE(sum, i, o));
}
