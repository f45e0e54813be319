// Transposes matrices: y[b][j][i] = x[b][i][j]. A work-group takes a tile through local memory, so that neighbours among its items read
// neighbours and write neighbours.
#include "clnet.clh"

// An element more than a row has, so that those of a column lie in different banks.
#define PITCH (TILE + 1)

__attribute__((reqd_work_group_size(GROUP, 1, 1))) kernel void transpose_gpu(IN(x), OUT(y), const int rows, const int columns,
                                                                             const int x_row, const int y_row, const int x_batch,
                                                                             const int y_batch) {
  local VALUE(x) tile[TILE * PITCH];
  const int item = (int)get_local_id(0), batch = (int)get_global_id(2);
  const int i0 = (int)get_global_id(1) * TILE, j0 = (int)get_global_id(0) / GROUP * TILE;
  const int from = batch * x_batch + i0 * x_row + j0, to = batch * y_batch + j0 * y_row + i0;
  const int height = min(rows - i0, TILE), width = min(columns - j0, TILE);
  // Beyond the matrix what is at its edge, so that nothing branches and all loads are under way at a time.
#pragma unroll
  for (int k = 0; k < TILE * TILE / GROUP; ++k) {
    const int i = (item + k * GROUP) / TILE, j = (item + k * GROUP) % TILE;
    tile[i * PITCH + j] = LOAD(x, from + min(i, height - 1) * x_row + min(j, width - 1));
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int k = 0; k < TILE * TILE / GROUP; ++k) {
    const int j = (item + k * GROUP) / TILE, i = (item + k * GROUP) % TILE;
    if (i < height && j < width) STORE(y, to + j * y_row + i, tile[i * PITCH + j]);
  }
}
