// The transformed inputs of all tiles, where they are too many to be made again by every work-item of conv2d_winograd_cpu:
// values {product, tile, channel}. Work-items: blocks of RB rows of tiles, groups of `images` images, vectors of channels.
#include "item.clh"
#define TILES global
#include "conv2d_winograd_tiles_cpu.clh"

#define PARAMETERS                                                                                                  \
  IN(x), OUT(values), INT(N), INT(images), INT(C), INT(H), INT(W), INT(TH), INT(TW), INT(RB), INT(top),             \
  INT(left), INT(pitch), INT(step), LOCAL(float, staged)
WORK_ITEM void conv2d_winograd_input_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int row0 = id0 * RB, rows = min(RB, TH - row0);
  const int n0 = id1 * images, n1 = BLOCK_END(n0, images, N);
  transform_tiles(x_base, x_offset, n0, n1, C, H, W, id2 * VW, row0, rows, TW, top, left, staged,
                  PTR(values) + (n0 * TH + row0) * TW * step, pitch, step);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd_input_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_winograd_input_cpu_item(IDS, PARAMETERS);
}
