// y[o, i, j] = the sum over a and b of row_weights[i, a] column_weights[j, b] x[o, row_places[i, a], column_places[j, b]]. A tap of
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

kernel void resample(IN(x), IN(places), IN(weights), OUT(y), const int lines, const int from_rows, const int from_columns,
                     const int rows, const int columns, const int row_taps, const int column_taps) {
  const int j = (int)get_global_id(0), line = (int)get_global_id(1);
  if (j >= columns || line >= lines) return;
  const int o = line / rows, i = REMAINDER(line, rows), column_table = rows * row_taps + j * column_taps;
  float sum = 0;
  for (int a = 0; a < TAPS_OF_ROWS; ++a) {
    const float row_weight = LOAD(weights, i * row_taps + a);
    if (row_weight == 0.0f) continue;
    const int from = (o * from_rows + LOAD(places, i * row_taps + a)) * from_columns;
    float part = 0;
    for (int b = 0; b < TAPS_OF_COLUMNS; ++b) {
      const float weight = LOAD(weights, column_table + b);
      const float value = LOAD(x, from + LOAD(places, column_table + b));
      part += weight == 0.0f ? 0.0f : weight * value;
    }
    sum += row_weight * part;
  }
  STORE(y, line * columns + j, sum);
}
