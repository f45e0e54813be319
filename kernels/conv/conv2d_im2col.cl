// Images unfolded into a matrix: row (channel, kh, kw), column (image, pixel of the output). Work-items: columns, channels.
#include "clnet.clh"

kernel void conv2d_im2col(IN(x), OUT(col), const int columns, const int C, const int H, const int W, const int KH,
                          const int KW, const int OH, const int OW, const int SH, const int SW, const int PT, const int PL,
                          const int DH, const int DW) {
  const int column = (int)get_global_id(0), c = (int)get_global_id(1);
  if (column >= columns) return;
  const int ox = column % OW, oy = column / OW % OH, n = column / OW / OH;
  const int plane = (n * C + c) * H * W;
  int out = c * KH * KW * columns + column;
  for (int kh = 0; kh < KH; ++kh) {
    const int iy = oy * SH - PT + kh * DH;
    for (int kw = 0; kw < KW; ++kw) {
      const int ix = ox * SW - PL + kw * DW;
      const bool inside = iy >= 0 && iy < H && ix >= 0 && ix < W;
      const float value = inside ? LOAD(x, plane + iy * W + ix) : 0;
      STORE(col, out, value);
      out += columns;
    }
  }
}
