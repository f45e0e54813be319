// The transformed inputs of all tiles, where they are too many to be made again by every work-item of conv2d_winograd_cpu:
// values {product, tile, channel}. Work-items: blocks of RB rows of tiles, groups of `images` images, vectors of channels.
#include "conv2d_winograd_tiles_cpu.clh"

TRANSFORM_TILES(global)

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd_input_cpu(
    IN(x), OUT(values), const int N, const int images, const int C, const int H, const int W, const int TH, const int TW,
    const int RB, const int top, const int left, const int pitch, const int step, local float *restrict staged) {
  const int row0 = (int)get_global_id(0) * RB, rows = min(RB, TH - row0);
  const int n0 = (int)get_global_id(1) * images, n1 = BLOCK_END(n0, images, N);
  transform_tiles(x_base, x_offset, n0, n1, C, H, W, (int)get_global_id(2) * VW, row0, rows, TW, top, left, staged,
                  PTR(values) + (n0 * TH + row0) * TW * step, pitch, step);
}
