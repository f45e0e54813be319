// Transposes matrices: y[b][j][i] = x[b][i][j], a tile per work-item, so that both sides are read and written in whole cache lines.
#include "clnet.clh"

kernel void transpose_cpu(IN(x), OUT(y), const int rows, const int columns, const int x_row, const int y_row, const int x_batch,
                          const int y_batch) {
  const int i0 = (int)get_global_id(1) * TILE, j0 = (int)get_global_id(0) * TILE;
  const int from = (int)get_global_id(2) * x_batch + i0 * x_row + j0, to = (int)get_global_id(2) * y_batch + j0 * y_row + i0;
  VALUE(x) tile[TILE * TILE];
  if (i0 + TILE <= rows && j0 + TILE <= columns) {
    for (int i = 0; i < TILE; ++i)
      for (int j = 0; j < TILE; ++j) tile[i * TILE + j] = LOAD(x, from + i * x_row + j);
    for (int j = 0; j < TILE; ++j)
      for (int i = 0; i < TILE; ++i) STORE(y, to + j * y_row + i, tile[i * TILE + j]);
  } else {
    const int height = min(rows - i0, TILE), width = min(columns - j0, TILE);
    for (int j = 0; j < width; ++j)
      for (int i = 0; i < height; ++i) STORE(y, to + j * y_row + i, LOAD(x, from + i * x_row + j));
  }
}
