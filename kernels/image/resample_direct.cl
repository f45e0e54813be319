// y[o, i, j] = the sum over a and b of row_weights[a, i] column_weights[b, j] x[o, row_places[a, i], column_places[b, j]]. A tap of
// weight 0 is not there. The tables have the rows' taps first, the columns' behind them.
#include "clnet.clh"

#ifdef ROW_TAPS
#define TAPS_OF_ROWS ROW_TAPS
#else
#define TAPS_OF_ROWS row_taps
#endif
#ifdef COLUMN_TAPS
#define TAPS_OF_COLUMNS COLUMN_TAPS
#else
#define TAPS_OF_COLUMNS column_taps
#endif

kernel void resample_direct(IN(x), IN(places), IN(weights), OUT(y), const int lines, const int from_rows, const int from_columns,
                            const int rows, const int columns, const int row_taps, const int column_taps) {
  const int j = (int)get_global_id(0), line = (int)get_global_id(1);
  if (j >= columns || line >= lines) return;
  const int o = line / rows, i = REMAINDER(line, rows), column_table = rows * row_taps + j;
  float sum = 0;
  for (int a = 0; a < TAPS_OF_ROWS; ++a) {
    const float row_weight = LOAD(weights, a * rows + i);
    if (row_weight == 0.0f) continue;
    const int from = (o * from_rows + LOAD(places, a * rows + i)) * from_columns;
    float part = 0;
    for (int b = 0; b < TAPS_OF_COLUMNS; ++b) {
      const float weight = LOAD(weights, column_table + b * columns);
      const float value = LOAD(x, from + LOAD(places, column_table + b * columns));
      part += weight == 0.0f ? 0.0f : weight * value;
    }
    sum += row_weight * part;
  }
  STORE(y, line * columns + j, sum);
}
