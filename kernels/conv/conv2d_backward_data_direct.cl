// The gradient of a convolution's input by its definition: one element per work-item gathers from the outputs that saw it.
#include "epilogue.clh"

kernel void conv2d_backward_data_direct(IN(y), IN(w), OUT(x), const int total, const int C, const int H, const int W,
                                        const int O, const int KH, const int KW, const int OH, const int OW, const int SH,
                                        const int SW, const int PT, const int PL, const int DH, const int DW, const int CG,
                                        const int OG EPILOGUE_PARAMETERS) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int ix = i % W, iy = i / W % H, c = i / (W * H) % C, n = i / (W * H) / C;
  const int group = c / CG;
  float sum = 0;
  for (int kh = 0; kh < KH; ++kh) {
    const int above = iy + PT - kh * DH, oy = above / SH;
    if (above < 0 || above % SH != 0 || oy >= OH) continue;
    for (int kw = 0; kw < KW; ++kw) {
      const int before = ix + PL - kw * DW, ox = before / SW;
      if (before < 0 || before % SW != 0 || ox >= OW) continue;
      for (int block = 0, end; block < OG; block = end) {
        end = BLOCK_END(block, CLNET_BLOCK, OG);
        float part = 0;
        for (int k = block; k < end; ++k) {
          const int o = group * OG + k;
          part += LOAD(y, ((n * O + o) * OH + oy) * OW + ox) * LOAD(w, ((o * CG + c % CG) * KH + kh) * KW + kw);
        }
        sum += part;
      }
    }
  }
  STORE(x, i, EPILOGUE(sum, i, c));
}
