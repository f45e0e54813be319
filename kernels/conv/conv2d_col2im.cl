// The unfolded matrix's adjoint: every pixel gathers the entries that it was copied to.
// Work-items: pixels, planes.
#include "epilogue.clh"

kernel void conv2d_col2im(IN(col), OUT(x), const int columns, const int C, const int H, const int W, const int KH,
                          const int KW, const int OH, const int OW, const int SH, const int SW, const int PT, const int PL,
                          const int DH, const int DW EPILOGUE_PARAMETERS) {
  const int pixel = (int)get_global_id(0), plane = (int)get_global_id(1);
  if (pixel >= H * W) return;
  const int iy = pixel / W, ix = pixel % W, n = plane / C, c = plane % C;
  float sum = 0;
  for (int kh = 0; kh < KH; ++kh) {
    const int above = iy + PT - kh * DH, oy = above / SH;
    if (above < 0 || above % SH != 0 || oy >= OH) continue;
    for (int kw = 0; kw < KW; ++kw) {
      const int before = ix + PL - kw * DW, ox = before / SW;
      if (before < 0 || before % SW != 0 || ox >= OW) continue;
      sum += LOAD(col, ((c * KH + kh) * KW + kw) * columns + (n * OH + oy) * OW + ox);
    }
  }
  const int to = plane * H * W + pixel;
  STORE(x, to, EPILOGUE(sum, to, c));
}
